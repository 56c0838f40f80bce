// jagged_slices: products of at most 32 columns, N = 1 (a matrix by a vector) included, on CUDA
// cores. docs/kernels/jagged_slices.md has the pictures and what was measured.
//
// A row of B has 2 to 256 bytes, so a warp reads many rows of B at a time, and the distribution of
// A's entries over its lanes decides the speed. A is stored in slices (jagged_slices/format.hpp),
// one for each warp: every lane has a row of A, or its share of a long one, and each step of the
// warp reads 32 entries that lie side by side. Neighbouring rows mostly name neighbouring rows of
// B, which then share sectors and lines.
//
// BYTES. A once, whole lines: 6 bytes per nonzero in fp16. A row of B up to 32 bytes is one sector
// of the L2 cache, whatever N; where lanes of a step ask for the same sector it moves once. C once.
//
// ORDER. Blocks of rows that gather the same rows of B find them in the L1 cache. With order=search
// rows are taken in the order of packed windows where that brings such rows together.
//
// LONG ROWS get so many lanes that each has at most `steps` entries, or all lanes of a warp. A row
// that is too long for a warp goes to a CTA, the longest rows to several. Their sums lie in a
// workspace, and the CTA that ends last adds them in order. So results agree bit for bit from
// launch to launch.

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "common/by_rows.hpp"
#include "common/dependent_launch.hpp"
#include "common/new_values.hpp"
#include "common/resident_csr.hpp"
#include "gpu/cuda_check.hpp"
#include "jagged_slices/device.cuh"
#include "jagged_slices/device_build.hpp"
#include "jagged_slices/device_sectors.hpp"
#include "jagged_slices/format.hpp"
#include "jagged_slices/order.hpp"
#include "jagged_slices/tiling.hpp"
#include "row_order/degree_order.hpp"
#include "row_order/resident_orders.hpp"
#include "select/features.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/shared_parts.hpp"
#include "window/device_survey.hpp"

namespace spmmbench::jagged_slices {
namespace {

using jagged::kWarpLanes;
using jagged::most_columns;
using jagged::Tiling;

constexpr std::int64_t kMostJaggedColumns = 32;

Tiling tiling_of(std::int64_t n, Precision precision) {
  return jagged::tile_columns(n, static_cast<int>(bytes_of(storage_type(precision))));
}

bool packs_entries(std::int64_t n, const SparseOperand& a) {
  const std::size_t value_bytes = bytes_of(storage_type(a.precision));
  if (value_bytes == 1) return a.k() <= jagged::packed_span(value_bytes);
  return value_bytes == 2 && n == 1;
}

const auto kSteps =
    auto_integer_option("steps", 1, 64, "most entries per lane of rows that take part of a warp");

// From this many nonzeros on a row is cut into smaller parts in products with a vector, which end
// when the longest row does. Shorter rows would lose by that. Measured
// (docs/decisions/jagged-slices.md).
constexpr std::int64_t kLongRow = 4096;

// With few entries per lane, lanes end sooner and more warps have work. With many entries fewer
// sums are exchanged, which pays once the device is full and rows are long enough. Measured
// (docs/decisions/jagged-slices.md).
jagged::JaggedShape choose_shape(std::int64_t nnz, std::int64_t rows, int places, bool is_vector,
                                 bool long_row, const Options& options) {
  const std::int64_t row = nnz / std::max<std::int64_t>(rows, 1);
  const std::int64_t many = is_vector ? 2'000'000 : 450'000;
  const int steps = row >= 20 && nnz > 4'000'000 ? 32 : row >= 12 && nnz > many ? 16 : 8;
  jagged::JaggedShape shape;
  shape.places = places;
  shape.most_steps = kSteps(options).value_or(steps);
  shape.whole_steps = std::max(jagged::whole_steps(nnz, is_vector && long_row), shape.most_steps);
  return shape;
}

// Whether a lane keeps four loads of B in flight in more warps rather than eight in fewer: better
// for many short rows, and for wider B once the device is full.
bool prefers_many_warps(std::int64_t nnz, std::int64_t rows, int lanes_per_row) {
  const std::int64_t row = nnz / std::max<std::int64_t>(rows, 1);
  const std::int64_t entries = nnz * lanes_per_row;
  if (lanes_per_row == 1) return entries > 1'200'000 && row < 12;
  const std::int64_t full = lanes_per_row == 2 ? 2'900'000 : 1'300'000;
  return entries > full || (entries > 300'000 && row < 9);
}

class JaggedSlicesPlan final : public Plan {
 public:
  JaggedSlicesPlan(const jagged::DeviceSlices& a, std::string order, const SparseOperand& operand,
                   const Tiling& tiling, std::int64_t n, Device& device, StageTimer& stages)
      : a_(a),
        operand_(operand),
        device_(device),
        order_(std::move(order)),
        tiling_(tiling),
        n_(n),
        many_warps_(prefers_many_warps(operand.nnz(), a.row_count, tiling.lanes)),
        overlap_(kernels_wait()),
        is_clear_(a.long_row_count == 0) {
    const auto timed = stages.scope("build");
    partial_sums_ = device.allocate(a.parts * tiling.columns * tiling.lanes *
                                    bytes_of(sum_type(operand.precision)));
    arrivals_ = device.allocate(a.long_row_count * sizeof(unsigned));
  }

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    if (!is_clear_) clear(stream);
    visit_b_and_c<1>(b.type, c.type, [&](auto* b_tag, auto* c_tag) {
      using TB = std::remove_pointer_t<decltype(b_tag)>;
      using TC = std::remove_pointer_t<decltype(c_tag)>;
      constexpr int kMost = most_columns(sizeof(TB));
      constexpr int kVectorBlocks = sizeof(TB) == 8 ? 8 : 12;  // fp64 takes twice the registers
      if (tiling_.columns == 1) return launch_as<TB, TC, 1, 1, 8, kVectorBlocks>(b, c, stream);
      if constexpr (kMost > 4)
        if (tiling_.columns < kMost) return launch_as<TB, TC, 4, 1, 8, 8>(b, c, stream);
      switch (tiling_.lanes) {
        case 1: return launch_vectors<TB, TC, 1>(b, c, stream);
        case 2: return launch_vectors<TB, TC, 2>(b, c, stream);
        case 4: return launch_vectors<TB, TC, 4>(b, c, stream);
        case 8:
          if constexpr (kMost <= 4) return launch_vectors<TB, TC, 8>(b, c, stream);
          break;
        default:
          if constexpr (kMost == 2) return launch_vectors<TB, TC, 16>(b, c, stream);
      }
    });
  }

  PlanReport report() const override {
    PlanReport report;
    report.device_bytes +=
        sum_of_bytes(a_.index, a_.entries, a_.rows, a_.empty, partial_sums_, arrivals_);
    report.params["order"] = order_;
    report.params["steps"] = fmt::format("{}", a_.shape.most_steps);
    report.metrics["slices"] = static_cast<double>(a_.count);
    report.metrics["long_rows"] = static_cast<double>(a_.long_row_count);
    return report;
  }

 private:
  // In the order of the first launch, so that nobody waits. Each launch leaves zeros behind.
  void clear(Stream stream) {
    SPMMBENCH_CUDA(cudaMemsetAsync(arrivals_.data(), 0, arrivals_.bytes(),
                                   static_cast<cudaStream_t>(stream.handle)));
    is_clear_ = !device_.is_capturing(stream);  // what is captured may never run
  }

  // Only products with a vector gain by it. Over many launches CTAs that wait pile up on the
  // multiprocessors that have room first, so every eighth launch lets the next one in only when it
  // may read B itself (docs/decisions/jagged-slices.md).
  bool lets_next_in_at_once() {
    constexpr unsigned kPeriod = 8;  // launches
    return tiling_.columns == 1 && ++launches_ % kPeriod != 0;
  }

  // Lanes that read as much of B at a time as they may.
  template <class TB, class TC, int kLanesPerRow>
  void launch_vectors(const DenseView& b, const DenseView& c, Stream stream) {
    constexpr int kColumns = most_columns(sizeof(TB));
    if (many_warps_) launch_as<TB, TC, kColumns, kLanesPerRow, 4, 10>(b, c, stream);
    else launch_as<TB, TC, kColumns, kLanesPerRow, 8, 6>(b, c, stream);
  }

  template <class TB, class TC, int kColumns, int kLanesPerRow, int kUnroll, int kMinBlocksPerSm>
  void launch_as(const DenseView& b, const DenseView& c, Stream stream) {
    constexpr std::int64_t kWarps = jagged::kThreads / kWarpLanes;
    using Sum = SumOf<TB>;
    const Clearing empty(a_.empty, n_ * static_cast<std::int64_t>(sizeof(TC)));
    const auto multiplying = static_cast<unsigned>((a_.count + kWarps - 1) / kWarps);
    const jagged::Arguments<Sum> in{.slices = a_.slices,
                                    .slice_count = static_cast<std::uint32_t>(a_.count),
                                    .row_lengths = a_.row_lengths,
                                    .row_ids = a_.row_ids,
                                    .part_of = a_.part_of,
                                    .long_rows = a_.long_rows,
                                    .col_idx = a_.col_idx,
                                    .values = a_.values,
                                    .packed = a_.packed,
                                    .first_columns = a_.first_columns,
                                    .partial_sums = partial_sums_.as<Sum>(),
                                    .arrivals = arrivals_.as<unsigned>(),
                                    .lets_next_in_at_once = lets_next_in_at_once(),
                                    .empty = empty,
                                    .clearing_from = multiplying};
    const jagged::Dense dense{
        .b = b.data,
        .b_row_bytes = static_cast<std::uint32_t>(b.row_stride() * sizeof(TB)),
        .c = c.data,
        .c_stride = c.row_stride(),
        .columns = static_cast<int>(n_),
        .scale = operand_.scale() * b.scale};
    const auto clearing = static_cast<unsigned>((empty.warps() + kWarps - 1) / kWarps);
    const dim3 grid(multiplying + clearing);
    launch_dependent(jagged::multiply<TB, TC, kColumns, kLanesPerRow, kUnroll, kMinBlocksPerSm>,
                     grid, dim3(jagged::kThreads), 0, stream, overlap_, in, dense);
  }

  const jagged::DeviceSlices& a_;
  const SparseOperand& operand_;
  Device& device_;
  std::string order_;
  Tiling tiling_;
  std::int64_t n_;
  bool many_warps_;
  bool overlap_;
  bool is_clear_;
  unsigned launches_ = 0;
  Buffer partial_sums_, arrivals_;
};

// All is made on the device, of a copy of A where A is not there.
class JaggedSlicesPrepared final : public Prepared, public ReadsNewValues {
 public:
  JaggedSlicesPrepared(const SparseOperand& a, const Options& options, Device& device)
      : a_(a),
        options_(options),
        device_(device),
        orders_(a.orders, device),
        chooser_(a, options, [this](const std::string& order, std::int64_t rows, StageTimer& cost) {
          return gathered(order, rows, cost);
        }) {}

  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) override {
    return bind_by_rows(a_, shape, device_, stages,
                        [&](const Shape& by_rows) { return bind_rows(by_rows, stages); });
  }

  void take_values(Stream stream) override { read_values(values_of(a_), stream); }
  void read_values(const NewValues& values, Stream stream) override {
    if (first_ == nullptr) return write_operand(values, stream);
    if (values.of_operand != nullptr) old_operand_ = values.of_operand;
    slices_.for_each([&](const jagged::DeviceSlices& slices) {
      jagged::replace_values(values, slices, stream);
    });
  }
  // From the slices that were made first: a captured read_values may have been launched again
  // since, and it knows of those that there were.
  void bring_operand_up_to_date(Stream stream) override {
    if (old_operand_ != nullptr)
      jagged::write_back(*first_, old_operand_, a_.on_device->value_type, stream);
  }

 private:
  std::unique_ptr<Plan> bind_rows(const Shape& shape, StageTimer& stages) {
    const Tiling tiling = tiling_of(shape.n, a_.precision);
    const std::string order = chooser_.choose(shape.n, stages);
    const int places = kWarpLanes / tiling.lanes;
    const bool is_vector = tiling.columns == 1;
    const bool packs = packs_entries(shape.n, a_);
    const auto& slices = slices_.get({order, places, is_vector, packs}, [&](StageTimer& cost) {
      return build(order, places, is_vector, packs, cost);
    });
    if (first_ == nullptr) first_ = &slices.part;
    csr_.reset();
    stages.add(slices.cost);
    return std::make_unique<JaggedSlicesPlan>(slices.part, order, a_, tiling, shape.n, device_,
                                              stages);
  }

  // Until the end of a bind.
  const DeviceCsr& csr(StageTimer& cost) {
    if (!csr_) csr_.emplace(a_, device_, cost);
    return csr_->view();
  }

  double gathered(const std::string& order, std::int64_t rows_of_sector, StageTimer& cost) {
    const DeviceCsr& a = csr(cost);
    const Buffer& rows = orders_.get(a, order, cost);
    const auto timed = cost.scope("compare");
    return jagged::gathered_sector_share(a, rows.as<std::int32_t>(), rows_of_sector, device_);
  }

  jagged::DeviceSlices build(const std::string& order, int places, bool is_vector, bool packs,
                             StageTimer& cost) {
    const DeviceCsr& a = csr(cost);
    const Buffer* rows = &orders_.get(a, order, cost);
    const auto timed = cost.scope("build");
    bring_operand_up_to_date(device_.stream());
    const Buffer row_ids = device_.upload(a_.row_ids);
    DeviceNonemptyRows nonempty;
    nonempty.count = a.rows;
    if (leaves_out_empty_rows(a_, a, kLeastEmpty, device_)) {
      nonempty = split_empty_rows(a, *rows, device_);
      rows = &nonempty.rows;
    }
    const bool long_row = is_vector && jagged::longest_row(a, device_) >= kLongRow;
    const jagged::JaggedShape shape =
        choose_shape(a.nnz, nonempty.count, places, is_vector, long_row, options_);
    EmptyRows empty(nonempty.empty, nonempty.empty_count, row_ids.as<std::int32_t>(), a.rows,
                    device_);
    jagged::DeviceSlices out =
        jagged::build_slices(a, rows->as<std::int32_t>(), nonempty.count,
                             row_ids.as<std::int32_t>(), shape, packs, device_);
    out.empty = std::move(empty);
    return out;
  }

  SparseOperand a_;
  Options options_;
  Device& device_;
  std::optional<ResidentCsr> csr_;
  ResidentOrders orders_;
  jagged::OrderChooser chooser_;
  const jagged::DeviceSlices* first_ = nullptr;  // of slices_
  void* old_operand_ = nullptr;                  // its values, once slices may have newer ones
  // By order, places, one column, packed.
  SharedParts<std::tuple<std::string, int, bool, bool>, jagged::DeviceSlices> slices_;
};

class JaggedSlicesKernel final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo&) const override {
    if (problem.n > kMostJaggedColumns)
      return Support::no(fmt::format("N above {}", kMostJaggedColumns));
    const auto value_bytes = static_cast<std::int64_t>(bytes_of(storage_type(problem.precision)));
    const auto sum_bytes = static_cast<std::int64_t>(bytes_of(sum_type(problem.precision)));
    const Tiling tiling = tiling_of(problem.n, problem.precision);
    const int places = kWarpLanes / tiling.lanes;
    // As if there were a long row: looking for one would read all row pointers.
    const jagged::JaggedShape shape = choose_shape(problem.nnz(), problem.m(), places,
                                                   tiling.columns == 1, true, problem.options);
    // The worst case: every row has a slice of its own, and its entries are
    // held packed and not packed. While slices are built, A and its sorted rows are there, too.
    const std::int64_t parts = 2 * problem.nnz() / (shape.whole_steps * places);
    const std::int64_t slices = problem.m() + jagged::JaggedShape::kTeam * parts + places;
    const std::int64_t entry_bytes = 4 + value_bytes + (packs_entries(problem.n, problem) ? 4 : 0);
    constexpr std::int64_t kRowBytes = 2 + 4 + 12;  // length, id; sorted
    constexpr std::int64_t kPlaceBytes = 8;         // where in A its row lies
    // A row that takes more than one place has over most_steps / 2 entries for each.
    const std::int64_t most_places = problem.m() + 2 * problem.nnz() / shape.most_steps +
                                     (jagged::JaggedShape::kTeam * parts + 1) * places;
    const std::int64_t bytes =
        static_cast<std::int64_t>(resident_bytes(problem)) + problem.nnz() * entry_bytes +
        slices * static_cast<std::int64_t>(sizeof(jagged::JaggedSlices::Slice) + 4) +
        (slices + places) * kRowBytes + most_places * kPlaceBytes +
        parts * (tiling.columns * tiling.lanes * sum_bytes + 16);
    return Support::yes(static_cast<std::size_t>(bytes) + bytes_by_rows(problem));
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options& options, Device& device,
                                    StageTimer&) const override {
    return std::make_unique<JaggedSlicesPrepared>(a, options, device);
  }

 private:
  KernelInfo info_ = {
      .name = "jagged_slices",
      .summary = "At most 32 columns: a warp per slice of rows, entries stored step by step",
      .source = "spmmbench",
      .precisions = {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16,
                     Precision::fp8_e4m3, Precision::fp8_e5m2, Precision::fp64},
      .c_types = {ElementType::f32, ElementType::f16, ElementType::bf16},
      .layouts = {Layout::row_major, Layout::col_major},
      .accumulation = Accumulation::fp32_fma,
      .writes_row_ids = true,
      .takes_values = true,
      .prepares_on_device = true,
      .options = {jagged::kOrder, kSteps},
  };
};

SPMMBENCH_REGISTER_KERNEL(JaggedSlicesKernel);

}  // namespace
}  // namespace spmmbench::jagged_slices
