// csr_row_split: C = A * B on the CUDA cores, straight from CSR. The second kernel to read, after
// csr_naive.cu: first this page, then device.cuh, then the host adapter below.
//
// WHAT IT COMPUTES. Row i of C is the sum over the nonzeros (i, k) of A of value * (row k of B). A
// row of B is contiguous, so a group of lanes reads it in 16-byte pieces, one piece per lane, and
// each lane keeps the sums of its own columns in registers from the first nonzero to the last:
//
//     A row i:  (k0, v0) (k1, v1) (k2, v2) ...          one group of 8, 16 or 32 lanes
//                  |        |        |
//     B row k0: [lane 0][lane 1][lane 2]...[lane L-1]   16 bytes each: 2 fp64, 4 fp32, ... 16 fp8
//     B row k1: [lane 0][lane 1][lane 2]...[lane L-1]   several rows are in flight at once
//     ...
//     C row i:  [lane 0][lane 1][lane 2]...[lane L-1]   written once, at the end
//
// With fp32 and N = 128 a group is a whole warp; narrower B put two or four rows of A in a warp;
// wider ones are cut into slabs of 32 pieces (blockIdx.y), in fp64 of 64 where rows are short, two
// for each lane. Nothing is shared between groups: no shared memory, no barrier.
//
// LONG ROWS. Rows of power-law graphs differ by a factor of 10^5, and a group that walks the
// longest one alone would finish long after all others. So a row of more than `split` nonzeros is
// cut into even segments. The groups of one row add their sums in a slot of global memory, and the
// group that arrives last copies it to C and zeroes it for the next launch
// (common/arrive_and_sum.cuh). That needs one launch (clearing C first would need two), works for
// every type of C, and leaves rows that are not cut, nearly all, without any atomic. Additions in
// one slot wait for each other, so a row of many segments has several slots, whose sums meet in a
// further one (SlotsOfRow in segments.hpp). The order of sums varies, so results differ within the
// bound.
//
// MANY CUT ROWS. A small matrix of even, rather long rows has most of them cut in a few segments,
// and atomics take as long as the products. There the segments of a row lie in one CTA, if they are
// no more than four, which adds them through shared memory. That memory is taken from the L1 cache,
// which costs other matrices 2 to 10 %; so it is a kernel of its own (kJoin).
//
// BYTES. Every nonzero gathers a row of B: nnz * N * bytes(B), mostly from the L2 cache; C is
// written once. The gather is the limit, so all that matters is to keep enough 16-byte loads in
// flight, and to write whole sectors of 32 bytes (store_streaming in common/dense_io.cuh).
//
// LAUNCH. CTAs may start while the stream's previous kernel ends (launch_dependent), which saves
// 0.5 us. Each CTA waits for the end of that kernel before it touches B, C or the accumulators, and
// lets the next kernel in when its own rows are summed. If it did so earlier, the CTAs of the next
// kernel would crowd onto the SMs that have room first: up to 30 % slower where CTAs are few.
//
// A group that then adds its sums to those of a cut row is not at its end yet. If nearly all CTAs
// are of such groups, those of the next kernel go where others have ended before, and if all fit on
// the device at once, the launch ends with the SM that has most of them. So there such a group lets
// the next kernel in by its end alone (release_early).

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "common/dependent_launch.hpp"
#include "common/empty_rows.hpp"
#include "common/grid_limit.hpp"
#include "common/memory_layout.hpp"
#include "common/resident_csr.hpp"
#include "common/sums.cuh"
#include "csr_row_split/device.cuh"
#include "csr_row_split/segments.hpp"
#include "gpu/cuda_check.hpp"
#include "row_order/degree_order.hpp"
#include "spmmbench/registry.hpp"
#include "window/device_survey.hpp"

namespace spmmbench::csr_row_split {
namespace {

// ---- Host adapter ----

const auto kSplit = auto_integer_option<std::int64_t>(
    "split", 1, INT32_MAX, "most nonzeros per segment; longer rows are cut");

// With long segments few groups have work at the end of a small matrix; short segments cost
// atomics. So about one segment per warp of the device, within the range that was best for large
// matrices.
std::int64_t choose_split(const SparseOperand& a, const Options& options,
                          const DeviceInfo& device) {
  constexpr std::int64_t kWarpsPerSm = 48;
  constexpr std::int64_t kMinSplit = 32;
  constexpr std::int64_t kMaxSplit = 128;
  const std::int64_t share = a.nnz() / (kWarpsPerSm * device.sm_count);
  const auto even = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(share)));
  return kSplit(options).value_or(std::clamp(even, kMinSplit, kMaxSplit));
}

// How the N columns are divided: the smallest group that covers them, else slabs of full warps.
struct Tiling {
  int lanes;
  int pieces;  // of a lane, each of 16 bytes
  std::int64_t slabs;
  std::int64_t columns_padded;
};

Tiling tile_columns(const SparseOperand& a, std::int64_t n) {
  const auto per_lane = static_cast<std::int64_t>(16 / bytes_of(storage_type(a.precision)));
  const int lanes = n <= 8 * per_lane ? 8 : n <= 16 * per_lane ? 16 : 32;
  // Two pieces halve the warps, each of which waits for its nonzeros. Where rows are longer, slabs
  // of B that the caches hold gain more (docs/decisions/csr-row-split.md).
  constexpr std::int64_t kShortRow = 9;  // nonzeros, as a mean
  const bool halves_warps = a.precision == Precision::fp64 && a.nnz() < kShortRow * a.m();
  const int pieces = halves_warps && n > lanes * per_lane ? 2 : 1;
  const std::int64_t columns = lanes * pieces * per_lane;
  const std::int64_t slabs = (n + columns - 1) / columns;
  return {lanes, pieces, slabs, slabs * columns};
}

// A on the device. It is the same for every N. Where A lies there already, it is cut there.
struct Matrix {
  Matrix(const SparseOperand& a, std::int64_t most_per_segment, Device& device, StageTimer& stages)
      : split(most_per_segment), csr(a, device, stages) {
    const auto timed = stages.scope("build");
    if (leaves_out_empty_rows(a, csr.view(), kLeastEmpty, device)) {
      cut_filled_rows(a, device);
    } else if (a.on_device == nullptr) {
      segments = row_split::upload(row_split::cut_rows(*a.a, a.row_ids, split), device);
    } else {
      const Buffer row_ids = device.upload(a.row_ids);
      segments = row_split::cut_rows(*a.on_device, row_ids.as<std::int32_t>(), split, device);
    }
  }

  // As those of a matrix that has no other rows, and the same entries.
  void cut_filled_rows(const SparseOperand& a, Device& device) {
    DeviceCsr filled = csr.view();
    const DeviceNonemptyRows rows = split_empty_rows(filled, {}, device);
    const Buffer row_ids = device.upload(a.row_ids);
    empty =
        EmptyRows(rows.empty, rows.empty_count, row_ids.as<std::int32_t>(), filled.rows, device);
    const Buffer row_ptr = row_pointers_at(filled, rows.rows, rows.count, device);
    Buffer rows_of_c;
    if (!a.row_ids.empty())
      rows_of_c = rows_at_places(row_ids.as<std::int32_t>(), rows.rows, rows.count, device);
    filled.rows = rows.count;
    filled.row_ptr = row_ptr.as<std::int64_t>();
    const Buffer& targets = a.row_ids.empty() ? rows.rows : rows_of_c;
    segments = row_split::cut_rows(filled, targets.as<std::int32_t>(), split, device);
  }

  std::size_t bytes() const {
    return csr.copied_bytes() + sum_of_bytes(segments.segments, segments.slots, empty);
  }

  std::int64_t split;
  ResidentCsr csr;
  row_split::DeviceSegments segments;
  EmptyRows empty;
};

// The parts that depend on N: the division of its columns, and the sums of the rows that are cut.
class CsrRowSplitPlan final : public Plan {
 public:
  CsrRowSplitPlan(const Matrix& a, const SparseOperand& operand, std::int64_t n, Device& device,
                  StageTimer& stages)
      : a_(a),
        device_(device),
        n_(n),
        tiling_(tile_columns(operand, n)),
        overlap_(kernels_wait()),
        is_clear_(a.segments.slot_count == 0) {
    if (is_clear_) return;
    const auto timed = stages.scope("build");
    const std::int64_t slots = a.segments.slot_count;
    MemoryLayout layout;
    layout.add(slots * tiling_.columns_padded * bytes_of(sum_type(operand.precision)));
    arrivals_at_ = layout.add(slots * tiling_.slabs * sizeof(unsigned));
    sums_ = device.allocate(layout.bytes());
  }

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    if (!is_clear_) clear(stream);
    visit_b_and_c<1>(b.type, c.type, [&](auto* b_tag, auto* c_tag) {
      using TB = std::remove_pointer_t<decltype(b_tag)>;
      using TC = std::remove_pointer_t<decltype(c_tag)>;
      if constexpr (std::is_same_v<TB, double>)
        if (tiling_.pieces == 2) return launch_as<TB, TC, 32, 2>(b, c, stream);
      switch (tiling_.lanes) {
        case 8: return launch_as<TB, TC, 8, 1>(b, c, stream);
        case 16: return launch_as<TB, TC, 16, 1>(b, c, stream);
        default: return launch_as<TB, TC, 32, 1>(b, c, stream);
      }
    });
  }

  PlanReport report() const override {
    PlanReport report;
    report.device_bytes += a_.bytes() + sums_.bytes();
    report.params["split"] = fmt::format("{}", a_.split);
    report.params["lanes"] = fmt::format("{}", tiling_.lanes);
    report.metrics["split_rows"] = static_cast<double>(a_.segments.cut_rows);
    return report;
  }

 private:
  // In the order of the first launch, so that nobody waits. Each launch leaves zeros behind.
  void clear(Stream stream) {
    SPMMBENCH_CUDA(
        cudaMemsetAsync(sums_.data(), 0, sums_.bytes(), static_cast<cudaStream_t>(stream.handle)));
    is_clear_ = !device_.is_capturing(stream);  // what is captured may never run
  }

  // Whether an uneven spread of the next launch's CTAs costs less than an early start saves, which
  // is 0.5 us: where whole rows end apart from one another, where an SM has few CTAs, and where it
  // has so many that the next launch finds little room or takes turns. All limits are measured,
  // where an SM holds twelve CTAs (docs/decisions/csr-row-split.md).
  template <class TB>
  bool release_early(const dim3& grid) const {
    constexpr double kWholeRows = 0.1;                    // of all segments
    constexpr int kFew = 3, kMany = 8, kManyOfLong = 10;  // CTAs to an SM
    constexpr std::int64_t kLong = 64;                    // nonzeros of a segment
    constexpr int kMeasured = 12;
    if (kMinBlocksPerSm<TB> != kMeasured) return true;
    const auto whole = static_cast<double>(a_.csr.view().rows - a_.segments.cut_rows);
    const int many = a_.split < kLong ? kMany : kManyOfLong;
    const std::int64_t ctas = std::int64_t{grid.x} * grid.y, sms = device_.info().sm_count;
    return whole > kWholeRows * static_cast<double>(a_.segments.count) || ctas < kFew * sms ||
           ctas > many * sms;
  }

  template <class TB, class TC, int kLanes, int kPieces>
  void launch_as(const DenseView& b, const DenseView& c, Stream stream) {
    constexpr std::int64_t kGroups = kThreads / kLanes, kWarps = kThreads / 32;  // per CTA
    using Sum = SumOf<TB>;
    const row_split::DeviceSegments& cut = a_.segments;
    const Clearing empty(a_.empty, n_ * static_cast<std::int64_t>(sizeof(TC)));
    const std::int64_t clearing =
        ctas_of<kWarps>((empty.warps() + tiling_.slabs - 1) / tiling_.slabs);
    const dim3 grid(static_cast<unsigned>(ctas_of<kGroups>(cut.count) + clearing),
                    static_cast<unsigned>(tiling_.slabs));
    const Workspace<Sum> work{.segments = cut.segments.as<Segment>(),
                              .segment_count = cut.count,
                              .fours_end = cut.fours_end,
                              .twos_end = cut.twos_end,
                              .slots = cut.slots.as<Slot>(),
                              .release_early = release_early<TB>(grid),
                              .sums = sums_.as<Sum>(),
                              .arrivals = array_at<unsigned>(sums_, arrivals_at_),
                              .columns_padded = tiling_.columns_padded,
                              .empty = empty};
    const DeviceCsr& csr = a_.csr.view();
    const CsrEntries<TB> a{csr.col_idx, static_cast<const TB*>(csr.values), csr.scale * b.scale};
    const auto kernel = a_.empty.any() ? csr_row_split_kernel<TB, TC, kLanes, kPieces, true, true>
                        : cut.twos_end > 0
                            ? csr_row_split_kernel<TB, TC, kLanes, kPieces, true, false>
                            : csr_row_split_kernel<TB, TC, kLanes, kPieces, false, false>;
    launch_dependent(kernel, grid, dim3(kThreads), 0, stream, overlap_, work, a,
                     static_cast<const TB*>(b.data), static_cast<std::uint32_t>(b.ld * sizeof(TB)),
                     static_cast<TC*>(c.data), c.ld, n_);
  }

  const Matrix& a_;
  Device& device_;
  std::int64_t n_;
  Tiling tiling_;
  bool overlap_;
  bool is_clear_;
  Buffer sums_;  // of the rows that are cut, and their arrivals
  std::size_t arrivals_at_ = 0;
};

class CsrRowSplitPrepared final : public Prepared {
 public:
  CsrRowSplitPrepared(const SparseOperand& a, std::int64_t split, Device& device,
                      StageTimer& stages)
      : matrix_(a, split, device, stages), operand_(a), device_(device) {}

  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) override {
    return std::make_unique<CsrRowSplitPlan>(matrix_, operand_, shape.n, device_, stages);
  }

 private:
  Matrix matrix_;
  SparseOperand operand_;
  Device& device_;
};

class CsrRowSplit final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo& device) const override {
    const Tiling tiling = tile_columns(problem, problem.n);
    if (tiling.slabs > kMaxGridY)
      return Support::no(
          fmt::format("N above {}", kMaxGridY * (tiling.columns_padded / tiling.slabs)));
    const std::int64_t split = choose_split(problem, problem.options, device);
    const std::int64_t bytes =
        static_cast<std::int64_t>(resident_bytes(problem)) +
        (problem.m() + 2 * (problem.nnz() / split)) * static_cast<std::int64_t>(sizeof(Segment)) +
        row_split::most_slots(problem.nnz(), split) *
            (tiling.columns_padded *
                 static_cast<std::int64_t>(bytes_of(sum_type(problem.precision))) +
             (tiling.slabs + 2) * 4);
    return Support::yes(static_cast<std::size_t>(bytes));
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options& options, Device& device,
                                    StageTimer& stages) const override {
    return std::make_unique<CsrRowSplitPrepared>(a, choose_split(a, options, device.info()), device,
                                                 stages);
  }

 private:
  KernelInfo info_ = {
      .name = "csr_row_split",
      .summary = "CSR on CUDA cores: a group of lanes per row, long rows split",
      .source = "spmmbench",
      .precisions = {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16,
                     Precision::fp64, Precision::fp8_e4m3, Precision::fp8_e5m2},
      .c_types = {ElementType::f32, ElementType::f16, ElementType::bf16},
      .accumulation = Accumulation::fp32_fma,
      .writes_row_ids = true,
      .takes_values = true,  // it reads those of the operand
      .prepares_on_device = true,
      .options = {kSplit},
  };
};

// ---- Registration: listed, verified, timed, reported and tested from here on ----

SPMMBENCH_REGISTER_KERNEL(CsrRowSplit);

}  // namespace
}  // namespace spmmbench::csr_row_split
