#include "multi/split_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/row_lengths.hpp"
#include "core/steady_seconds.hpp"
#include "measure/case_checks.hpp"
#include "spmmbench/registry.hpp"
#include "verify/bound.hpp"
#include "verify/exact.hpp"
#include "verify/reference.hpp"

namespace spmmbench {
namespace {

void require_ok(const ResultRow& row) {
  if (row.status != Status::ok) throw CaseEnded(row.status, row.reason);
}

// The kernel that a row was measured with: `auto` names the one that it picked.
KernelChoice launched_in(const ResultRow& row, const KernelChoice& choice) {
  if (!row.pick) return choice;
  const Spec spec = Spec::parse(row.pick->kernel);
  return {Registry<Kernel>::instance().find(spec.name), spec.options};
}

// C of a product that all ranks made at once is right in every part.
class TogetherChecks {
 public:
  TogetherChecks(Team& team, const CaseInput& input, Exchange& exchange,
                 const std::function<void()>& launch)
      : team_(team), input_(input), exchange_(exchange), launch_(launch) {}

  void check(ResultRow& row, const char* which) {
    team_.at_once([&] {
      exchange_.poison_received();
      poison(input_.operands->c, input_.choice->kernel->info(), *input_.device);
      launch_();
      input_.device->synchronize();
    });
    team_.alone([&] {
      if (wrote_to_b(*input_.operands, *input_.device))
        throw CaseEnded(
            Status::wrong,
            fmt::format("{}: the B that was gathered is not the one that was sent", which));
      if (!verify(input_, row, fmt::format("{}: ", which)))
        throw CaseEnded(Status::wrong, row.reason);
    });
  }

 private:
  Team& team_;
  const CaseInput& input_;
  Exchange& exchange_;
  const std::function<void()>& launch_;
};

}  // namespace

SplitA::SplitA(const CsrMatrix& a, Precision precision, Split split, Team& team)
    : whole_(a), precision_(precision), split_(split), team_(team) {
  const int rank = team.group().rank();
  if (split != Split::columns) {
    rows_ = split_rows(a, team.group().ranks());
    for (const Range& rows : rows_->a)
      if (rows.size() == 0) throw CaseEnded(Status::skipped, "a GPU would have no row of A");
    gather_ = make_gather(*rows_, choose_way(split, *rows_), rank);
  }
  team.alone([&] {
    if (rows_) part_.emplace(part_of_a(a, *rows_, gather_, rank), precision, team.device());
    if (rank != 0 && rows_) return;
    try {
      whole_on_device_.emplace(a, precision, team.device());
    } catch (const OutOfMemory&) {
      if (!rows_) throw;  // else no time of one GPU is known
    }
  });
}

// The time of the product on one GPU. None where it has not enough memory.
std::optional<double> SplitA::time_alone(const Request& request, const ResultRow& row) {
  double us = -1;
  team_.alone([&] {
    if (team_.group().rank() != 0 || !whole_on_device_) return;
    ResultRow alone = row;
    Shape shape = request.shape;
    shape.layout = layout_for(request.choice->info(), shape.layout, shape.n);
    try {
      LocalProduct product(*whole_on_device_, *request.choice, shape, nullptr, request.seed,
                           team_.device());
      if (!product.run(request.limits, alone)) throw DeviceError(alone.reason, true);
    } catch (const OutOfMemory&) {
      return;
    }
    if (alone.status == Status::skipped && alone.reason.starts_with("out of")) return;
    require_ok(alone);
    us = alone.hot->median_us;
  });
  us = team_.group().exchange(us).front();
  return us < 0 ? std::nullopt : std::optional(us);
}

std::unique_ptr<SplitA::Part> SplitA::make_part(const Request& request) {
  auto part = std::make_unique<Part>();
  Shape shape = request.shape;
  std::uint64_t seed = request.seed;
  if (rows_) {
    part->b = rows_of_drawn_b(gather_.original, shape.n, precision_, seed);
  } else {
    const int rank = team_.group().rank();
    shape.n = equal_ranges(shape.n, team_.group().ranks())[rank].size();
    shape.layout = layout_for(request.choice->info(), shape.layout, shape.n);
    seed = hash_position(seed, rank, 0);  // other columns of B have other values
  }
  part->product.emplace(rows_ ? *part_ : *whole_on_device_, *request.choice, shape,
                        rows_ ? &part->b : nullptr, seed, team_.device());
  return part;
}

void SplitA::measure(const Request& request, ResultRow& row) {
  if (!rows_ && request.shape.n < team_.group().ranks())
    throw CaseEnded(Status::skipped, "B has fewer columns than there are GPUs");
  if (rows_ && request.shape.layout != Layout::row_major)
    throw CaseEnded(Status::skipped, "a B that is split by rows is row-major");
  if (is_scaled(precision_))
    throw CaseEnded(Status::skipped, "GPUs would have to agree on a scale of B");
  const KernelInfo info = request.choice->info();
  if (info.inspects_b || info.ignores_stream)
    throw CaseEnded(Status::skipped, "its launches must follow what gathers B on one stream");
  row.split->one_gpu_us = time_alone(request, row);
  std::unique_ptr<Part> part;
  team_.alone([&] {
    part = make_part(request);
    if (!part->product->run(request.limits, row)) throw DeviceError(row.reason, true);
    require_ok(row);
  });
  run_together(request, *part, row);
}

double SplitA::received_share() const {
  if (!rows_) return 0;
  const std::int64_t of_others = whole_.cols - rows_->b[team_.group().rank()].size();
  const std::int64_t received =
      gather_.way == Way::all_gather ? of_others : gather_.rows_received();
  return team_.most(
      of_others == 0 ? 0.0 : static_cast<double>(received) / static_cast<double>(of_others));
}

void SplitA::run_together(const Request& request, Part& part, ResultRow& row) {
  const CaseInput& input = part.product->input();
  Device& device = team_.device();
  SplitProduct& split = *row.split;
  std::unique_ptr<Plan> plan;
  std::optional<Exchange> exchange;
  const double hot_us = row.hot->median_us;
  row.hot = row.cold = std::nullopt;  // they were those of the part alone
  team_.alone([&] {
    plan = part.product->bind();
    exchange.emplace(gather_, input.operands->b, device, team_.transport());
  });

  const Link& link = gather_.way == Way::all_gather ? team_.gather_link() : team_.exchange_link();
  split.way = to_string(gather_.way);
  split.product_us = team_.most(hot_us);
  split.sent_bytes = team_.most(exchange->bytes_sent());
  split.received_bytes = team_.most(exchange->bytes_received());
  split.link_gb_per_s = link.bytes_per_us() / 1e3;
  split.link_latency_us = link.latency_us();
  split.received_share = received_share();
  double transfer_us = link.us(split.received_bytes);
  if (gather_.way == Way::needed_rows)  // packing reads and writes what is sent
    transfer_us += 2 * split.sent_bytes / device.copy_bytes_per_second() * 1e6;
  split.pays_from_us = pays_from_us(transfer_us, team_.group().ranks());
  if (split.one_gpu_us) split.should_pay = *split.one_gpu_us > split.pays_from_us;

  const std::function<void()> both = [&] {
    exchange->launch();
    plan->launch(input.operands->b, input.operands->c, device.stream());
  };
  TogetherChecks checks(team_, input, *exchange, both);
  checks.check(row, "together");
  if (gather_.way != Way::none) test_exactly(request, part, *exchange, row);
  split.transfer_us = gather_.way == Way::none
                          ? 0
                          : team_.time_hot([&] { exchange->launch(); }, request.limits).median_us;
  row.hot = team_.time_hot(both, request.limits, gather_.way == Way::none);
  row.cold = team_.time_cold(both, request.limits);
  checks.check(row, "after the timed launches");

  row.verify->error_over_bound = team_.most(row.verify->error_over_bound);
  row.verify->error_over_typical = team_.most(row.verify->error_over_typical);
  row.verify->error_over_mean = team_.most(row.verify->error_over_mean);
  row.device_bytes =
      static_cast<std::uint64_t>(team_.most(static_cast<double>(row.device_bytes.value_or(0))));
  double bytes = 0;
  for (const double of_part : team_.group().exchange(input.compulsory_bytes)) bytes += of_part;
  row.compulsory_bytes = bytes;
  row.bound_us = team_.most(bound_of_part_us(input.bound_us, exchange->bytes_received(), link));
  row.of_bound = *row.bound_us / row.hot->median_us;
  row.gflops = 2.0 * static_cast<double>(whole_.nnz()) * static_cast<double>(request.shape.n) /
               row.hot->median_us / 1e3;
  if (split.one_gpu_us) split.pays = row.hot->median_us < *split.one_gpu_us;
}

// The exact test of the whole product: every rank has its part of one A and one B with values for
// which every sum is exact, and receives what it lacks of that B.
void SplitA::test_exactly(const Request& request, Part& part, Exchange& exchange, ResultRow& row) {
  const CaseInput& input = part.product->input();
  Device& device = team_.device();
  const KernelChoice choice = launched_in(row, *request.choice);
  const int rank = team_.group().rank();
  const std::optional<Lattice> lattice = make_lattice(request.seed, longest_row(whole_), precision_,
                                                      sum_bits(choice.kernel->info(), precision_));
  if (!lattice) return;  // the row says that there was no exact test: a part has that row too
  CsrMatrix a;
  DenseMatrix b, own;
  Buffer memory;
  DenseView view = input.operands->b;
  std::unique_ptr<ReferenceChecker> reference;
  std::unique_ptr<Prepared> prepared;
  std::unique_ptr<Plan> plan;
  team_.alone([&] {
    a = choice.kernel->info().binary
            ? part_->csr()
            : with_lattice_of_whole(part_->csr(), rows_->a[rank].begin, gather_.original, *lattice);
    b = rows_of_lattice_b(gather_.original, request.shape.n, precision_, *lattice);
    memory = device.allocate(view.bytes());
    view.data = memory.data();
    upload_rounded(b, view, precision_, device);
    reference = make_reference(a, {}, view, device);
    SparseOperand operand = input.problem.operand();
    operand.a = &a;
    operand.on_device = nullptr;
    StageTimer not_counted;
    prepared = choice.kernel->prepare(operand, choice.options, device, not_counted);
    plan = prepared->bind(input.problem.shape(), not_counted);
    own = rows_of_lattice_b(
        std::span(gather_.original).subspan(gather_.own.begin, gather_.own.size()), request.shape.n,
        precision_, *lattice);
    upload_rounded(own, exchange.own(), precision_, device);
  });
  team_.at_once([&] {
    exchange.poison_received();
    poison(input.operands->c, choice.kernel->info(), device);
    exchange.launch();
    plan->launch(input.operands->b, input.operands->c, device.stream());
    device.synchronize();
  });
  team_.alone([&] {
    const Verdict verdict = reference->check_equal(input.operands->c);
    input.operands->fill_b();
    if (verdict.ok) return;
    row.exact->passed = false;
    throw CaseEnded(Status::wrong,
                    fmt::format("together: exact test: C({}, {}) of this part differs from the "
                                "reference",
                                verdict.worst_row, verdict.worst_col));
  });
}

}  // namespace spmmbench
