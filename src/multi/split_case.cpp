#include "multi/split_case.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/row_lengths.hpp"
#include "measure/case_checks.hpp"
#include "measure/preparation.hpp"
#include "measure/rows_of_b.hpp"
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
    : whole_(a),
      precision_(precision),
      team_(team),
      grid_(grid_of(split, team.group().ranks())),
      row_part_(grid_.row_of(team.group().rank())),
      column_part_(grid_.column_of(team.group().rank())) {
  const int rank = team.group().rank();
  if (split == Split::grid && grid_.columns == 1)
    throw CaseEnded(Status::skipped,
                    fmt::format("{} GPUs make no grid of rows and columns", grid_.rows));
  if (grid_.rows > 1) {
    rows_ = split_rows(a, balanced_rows(a, grid_.rows));
    for (const Range& rows : rows_->a)
      if (rows.size() == 0) throw CaseEnded(Status::skipped, "a GPU would have no row of A");
  }
  team.alone([&] {
    if (rows_) {
      CsrMatrix ordered;
      const Way way = choose_way(split, *rows_);
      if (has_needed_rows(way)) {
        const auto timed = order_stages_.scope(kReorderStage);
        ordered = permute_both(a, inner_rows_first(a, *rows_));
        rows_ = split_rows(ordered, rows_->a);
      }
      gather_ = make_gather(*rows_, way, row_part_);
      part_.emplace(part_of_a(has_needed_rows(way) ? ordered : a, *rows_, gather_, row_part_),
                    precision, team.device());
    }
    if (rank != 0 && rows_) return;
    try {
      whole_on_device_.emplace(a, precision, team.device());
    } catch (const OutOfMemory&) {
      if (!rows_) throw;  // else no time of one GPU is known
    }
  });
}

Range SplitA::columns(const Request& request) const {
  return equal_ranges(request.shape.n, grid_.columns)[column_part_];
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
      LocalProduct product(*whole_on_device_, *request.choice, shape, {}, request.seed,
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

std::unique_ptr<LocalProduct> SplitA::make_part(const Request& request) {
  Shape shape = request.shape;
  std::uint64_t seed = request.seed;
  shape.n = columns(request).size();
  if (!rows_) shape.layout = layout_for(request.choice->info(), shape.layout, shape.n);
  // Other columns of B have other values.
  if (grid_.columns > 1) seed = hash_position(seed, column_part_, 0);
  return std::make_unique<LocalProduct>(rows_ ? *part_ : *whole_on_device_, *request.choice, shape,
                                        gather_.original, seed, team_.device());
}

void SplitA::measure(const Request& request, ResultRow& row) {
  if (request.shape.n < grid_.columns)
    throw CaseEnded(Status::skipped, "B has fewer columns than there are parts of it");
  if (rows_ && request.shape.layout != Layout::row_major)
    throw CaseEnded(Status::skipped, "a B that is split by rows is row-major");
  if (is_scaled(precision_))
    throw CaseEnded(Status::skipped, "GPUs would have to agree on a scale of B");
  const KernelInfo info = request.choice->info();
  if (info.inspects_b || info.ignores_stream)
    throw CaseEnded(Status::skipped, "its launches must follow what gathers B on one stream");
  row.split->one_gpu_us = time_alone(request, row);
  std::unique_ptr<LocalProduct> part;
  team_.alone([&] { part = make_part(request); });  // who has no room for it says so at once
  team_.alone([&] {
    if (!part->run(request.limits, row)) throw DeviceError(row.reason, true);
    require_ok(row);
  });
  run_together(request, *part, row);
}

double SplitA::received_share() const {
  if (!rows_) return 0;
  const std::int64_t of_others = whole_.cols - rows_->b[row_part_].size();
  const std::int64_t received =
      gather_.way == Way::all_gather ? of_others : gather_.rows_received();
  return team_.most(
      of_others == 0 ? 0.0 : static_cast<double>(received) / static_cast<double>(of_others));
}

bool SplitA::in_one_call(const DenseView& b) const {
  if (gather_.way != Way::all_gather || grid_.columns > 1) return false;
  const double bytes = team_.most(static_cast<double>(gather_.rows_received() * b.ld) *
                                  static_cast<double>(bytes_of(b.type)));
  return team_.gather_link().us(bytes) <= team_.exchange_link().us(bytes);
}

double SplitA::reads_of_a_row() const {
  const double rows = team_.most(static_cast<double>(rows_->needed[row_part_].size()));
  const double reads = team_.most(static_cast<double>(rows_->reads_in_place[row_part_]));
  return rows > 0 ? reads / rows : 1;
}

// How this rank gathers; `transfer_us` is the time of the slowest rank. A rank that pulls less is
// done sooner; with NCCL, ranks that send to each other are done at the same time.
Gathering SplitA::gathering_of(const SplitProduct& split, double transfer_us,
                               const Exchange& exchange) const {
  Gathering gathering = {.us = transfer_us};
  if (!has_needed_rows(gather_.way)) return gathering;
  const auto weight = [&](std::int64_t rows) {
    return static_cast<double>(part_->csr().row_ptr[rows] + rows * kRowInNonzeros);
  };
  gathering.inner_share = weight(rows_->inner[row_part_]) / weight(part_->csr().rows);
  if (gather_.way == Way::pulled) {
    gathering.gpu_share = kPullShare;
    if (split.received_bytes > 0) gathering.us *= exchange.bytes_received() / split.received_bytes;
  }
  return gathering;
}

std::unique_ptr<PartProduct> SplitA::overlap(const Request& request, const CaseInput& input,
                                             Exchange& exchange,
                                             const std::function<void()>& alternating,
                                             ResultRow& row) {
  std::unique_ptr<PartProduct> in_two;
  StageTimer stages;
  team_.alone([&] {
    try {
      in_two = std::make_unique<PartProduct>(part_->csr(), rows_->inner[row_part_], gather_.own,
                                             precision_, launched_in(row, *request.choice),
                                             input.problem.shape(), team_.device(), stages);
    } catch (const Unsupported&) {
    } catch (const OutOfMemory&) {
    }
  });
  if (team_.most(in_two ? 0 : 1) > 0) return nullptr;
  const auto beside = [&] { in_two->launch(exchange, exchange.b(), input.operands->c); };
  const SampleLimits few = {.noise = 0.02, .min_samples = 3, .max_samples = 5, .max_seconds = 0.1};
  if (team_.time_hot(beside, few).median_us >= team_.time_hot(alternating, few).median_us)
    return nullptr;
  add_stages(stages, row);
  return in_two;
}

SplitA::Transfer SplitA::measure_transfer(const SampleLimits& limits, bool all_in_one,
                                          Exchange& exchange, SplitProduct& split) {
  const Link& link = all_in_one ? team_.gather_link() : team_.exchange_link();
  split.way = to_string(gather_.way);
  split.sent_bytes = team_.most(exchange.bytes_sent());
  split.received_bytes = team_.most(exchange.bytes_received());
  split.received_share = received_share();
  const auto time_of = [&](const std::function<void()>& launch) {
    return team_.time_hot(launch, limits).median_us;
  };
  const bool in_place = gather_.way == Way::peer;
  if (gather_.way != Way::none) {
    split.link_gb_per_s = link.bytes_per_us() / 1e3;
    split.link_latency_us = link.latency_us();
    split.transfer_us = time_of([&] {
      exchange.launch();
      if (in_place) exchange.read_in_place();
    });
  }
  Transfer out;
  if (in_place || gather_.way == Way::pulled) {
    out.us = split.transfer_us;
    out.meet_us = time_of([&] { exchange.meet(); });
    out.link_us = std::max(0.0, split.transfer_us - out.meet_us);
  } else {
    out.us = out.link_us = link.us(split.received_bytes);
  }
  // Packing reads and writes what it packs. The slowest rank's time counts: all have to decide
  // alike.
  if (gather_.way == Way::needed_rows)
    out.us +=
        team_.most(2 * exchange.bytes_packed() / team_.device().copy_bytes_per_second() * 1e6);
  return out;
}

void SplitA::forecast(const Shape& shape, const Transfer& transfer, const Gathering& gathering,
                      SplitProduct& split) {
  const int ranks = team_.group().ranks();
  split.pays_from_us =
      gather_.way == Way::peer
          ? pays_from_us_in_place(transfer.meet_us, transfer.link_us * reads_of_a_row(), ranks)
          : team_.most(pays_from_us(gathering, ranks));
  if (!split.one_gpu_us) return;
  const double bytes = compulsory_bytes(whole_, shape.n, precision_, shape.c_type);
  split.one_gpu_of_bound = bytes / team_.device().copy_bytes_per_second() * 1e6 / *split.one_gpu_us;
  split.should_pay = *split.one_gpu_us > split.pays_from_us;
}

void SplitA::add_up(const Request& request, const CaseInput& input, double link_us,
                    ResultRow& row) {
  row.verify->error_over_bound = team_.most(row.verify->error_over_bound);
  row.verify->error_over_typical = team_.most(row.verify->error_over_typical);
  row.verify->error_over_mean = team_.most(row.verify->error_over_mean);
  if (has_needed_rows(gather_.way)) add_stages(order_stages_, row);
  row.device_bytes =
      static_cast<std::uint64_t>(team_.most(static_cast<double>(row.device_bytes.value_or(0))));
  double bytes = 0;
  for (const double of_part : team_.group().exchange(input.compulsory_bytes)) bytes += of_part;
  row.compulsory_bytes = bytes;
  row.bound_us = std::max(team_.most(input.bound_us), link_us);
  row.of_bound = *row.bound_us / row.hot->median_us;
  row.gflops = 2.0 * static_cast<double>(whole_.nnz()) * static_cast<double>(request.shape.n) /
               row.hot->median_us / 1e3;
  if (row.split->one_gpu_us) row.split->pays = row.hot->median_us < *row.split->one_gpu_us;
}

void SplitA::run_together(const Request& request, LocalProduct& part, ResultRow& row) {
  const CaseInput& input = part.input();
  Device& device = team_.device();
  SplitProduct& split = *row.split;
  std::unique_ptr<Plan> plan;
  std::optional<PeerRows> peer;
  std::optional<Exchange> exchange;
  const double hot_us = row.hot->median_us;
  row.hot = row.cold = std::nullopt;  // they were those of the part alone
  if (gather_.way == Way::peer) peer.emplace(team_, rows_->b, input.operands->b);
  if (gather_.way == Way::pulled) peer.emplace(team_, gather_, input.operands->b);
  const bool all_in_one = in_one_call(input.operands->b);
  team_.alone([&] {
    plan = part.bind();
    exchange.emplace(gather_, grid_.same_columns(team_.group().rank()), team_.group().ranks(),
                     input.operands->b, device, team_.transport(), peer ? &*peer : nullptr,
                     all_in_one ? Exchange::AllBy::one_call : Exchange::AllBy::sends);
    if (peer) fill_own(request, *exchange);
  });

  split.product_us = team_.most(hot_us);
  const Transfer transfer = measure_transfer(request.limits, all_in_one, *exchange, split);
  const Gathering gathering = gathering_of(split, transfer.us, *exchange);
  forecast(request.shape, transfer, gathering, split);

  const std::function<void()> alternating = [&] {
    exchange->launch();
    plan->launch(exchange->b(), input.operands->c, device.stream());
  };
  std::unique_ptr<PartProduct> in_two;
  if (gather_.way != Way::peer && team_.most(overlapped_us(split.product_us, gathering)) <
                                      one_after_another_us(split.product_us, {.us = transfer.us}))
    in_two = overlap(request, input, *exchange, alternating, row);
  const std::function<void()> both =
      in_two ? [&] { in_two->launch(*exchange, exchange->b(), input.operands->c); } : alternating;
  TogetherChecks checks(team_, input, *exchange, both);
  checks.check(row, "together");
  const std::int64_t inner = in_two ? rows_->inner[row_part_] : 0;
  if (gather_.way != Way::none) test_exactly(request, input, inner, *exchange, row);
  row.hot = team_.time_hot(both, request.limits);
  row.cold = team_.time_cold(both, request.limits);
  checks.check(row, "after the timed launches");
  if (in_two) {
    row.device_bytes = in_two->device_bytes();
    row.metrics["overlapped_share"] = -team_.most(-gathering.inner_share);
  }
  add_up(request, input, transfer.link_us, row);
}

void SplitA::fill_own(const Request& request, Exchange& exchange) {
  Device& device = team_.device();
  const Buffer original = device.upload(gather_.original);
  // Zeros that only make rows lie well are read as well.
  const bool all = gather_.way == Way::pulled;
  fill_rows(all ? exchange.b() : exchange.own(),
            original.as<std::int32_t>() + (all ? 0 : gather_.own.begin),
            {.seed = stream_seed(request.seed, kStreamB), .precision = precision_}, device);
  device.synchronize();
}

// The exact test of the whole product: every rank has its part of one A and one B with values for
// which every sum is exact, and receives what it lacks of that B.
void SplitA::test_exactly(const Request& request, const CaseInput& input, std::int64_t inner,
                          Exchange& exchange, ResultRow& row) {
  Device& device = team_.device();
  const KernelChoice choice = launched_in(row, *request.choice);
  const std::optional<Lattice> lattice = make_lattice(request.seed, longest_row(whole_), precision_,
                                                      sum_bits(choice.kernel->info(), precision_));
  if (!lattice) return;  // the row says that there was no exact test: a part has that row too
  CsrMatrix a;
  Buffer memory;
  DenseView view = input.operands->b;
  std::unique_ptr<ReferenceChecker> reference;
  std::optional<PartProduct> product;
  team_.alone([&] {
    a = choice.kernel->info().binary
            ? part_->csr()
            : with_lattice_of_whole(part_->csr(), rows_->a[row_part_].begin, gather_.original,
                                    *lattice);
    memory = device.allocate(view.bytes());
    view.data = memory.data();
    const ValuesOfB values = {
        .of_lattice = true, .lattice = *lattice, .first_column = columns(request).begin};
    const Buffer original = device.upload(gather_.original);
    fill_rows(view, original.as<std::int32_t>(), values, device);
    fill_rows(exchange.own(), original.as<std::int32_t>() + gather_.own.begin, values, device);
    device.synchronize();
    reference = make_reference(a, {}, view, device);
    StageTimer not_counted;
    product.emplace(a, inner, gather_.own, precision_, choice, input.problem.shape(), device,
                    not_counted);
  });
  team_.at_once([&] {
    exchange.poison_received();
    poison(input.operands->c, choice.kernel->info(), device);
    product->launch(exchange, exchange.b(), input.operands->c);
    device.synchronize();
  });
  team_.alone([&] {
    const Verdict verdict = reference->check_equal(input.operands->c);
    if (verdict.ok) return;
    row.exact->passed = false;
    throw CaseEnded(Status::wrong,
                    fmt::format("together: exact test: C({}, {}) of this part differs from the "
                                "reference",
                                verdict.worst_row, verdict.worst_col));
  });
  team_.alone([&] {  // when no rank reads the rows of another
    if (exchange.b().data != input.operands->b.data) fill_own(request, exchange);
    else input.operands->fill_b();
  });
}

}  // namespace spmmbench
