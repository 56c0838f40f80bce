// async_wcsr_paper: WCSR as AsyncSparse (arXiv 2604.17834) describes it, kept beside async_wcsr as
// the published configuration. It is reconstructed from the paper's abstract and definitions; tile
// sizes and the number of stages are this project's.
//
// One CTA per (window or part of one, 128 features). A producer warpgroup fills a ring: the
// window's 64 x 64 box of A by one TMA copy, the 64 rows of B that its columns name by cp.async
// into the 128-byte swizzle (Hopper's TMA cannot gather rows). A consumer warpgroup multiplies with
// wgmma:
//
//      A box   64 rows x 64 packed columns         K-major
//      B tile  64 packed columns x 2 x 64 features  MN-major, 128-byte panels
//
// Long windows are split over CTAs, which add their sums in a workspace.

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <array>
#include <limits>

#include "common/arrive_and_sum.cuh"
#include "common/dependent_launch.hpp"
#include "common/grid_limit.hpp"
#include "common/hopper_ring.cuh"
#include "format/tile_work.hpp"
#include "format/wcsr.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/tensor_map.hpp"
#include "ptx/cp_async.cuh"
#include "ptx/cuda_ptx.cuh"
#include "ptx/griddepcontrol.cuh"
#include "ptx/keep.cuh"
#include "ptx/sm90a.cuh"
#include "ptx/wgmma.cuh"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

// ---- Device code
// ---------------------------------------------------------------------------------

constexpr int kWindowRows = 64;   // wgmma's m
constexpr int kTileColumns = 64;  // 128 bytes of 16-bit values: one swizzled line of A
constexpr int kFeatures = 128;    // wgmma's n
constexpr int kStages = 4;
constexpr int kLag = 2;  // tiles whose copies are in flight behind the one being issued
constexpr int kWarpgroup = 128;
constexpr int kConsumerWarps = kWarpgroup / 32;
constexpr int kLineBytes = 128;
constexpr int kPanelBytes = 64 * kLineBytes;  // of A's box, and of each half of B's tile
constexpr int kStageBytes = 3 * kPanelBytes;
constexpr int kSharedBytes = kStages * kStageBytes + 1024;  // swizzled tiles start at 1024 bytes
static_assert(kLag < kStages, "a stage is published before it is wanted again");

struct Arguments {
  const TileSpan* spans;
  const TileSplit* splits;
  const std::int32_t* col_idx;
  const std::int32_t* row_ids;  // null: the rows' own order
  std::int64_t rows;
  const void* b;
  std::int64_t b_row_bytes;
  float* c;
  std::int64_t ldc;
  std::int64_t n;
  float* sums;         // [split][blockIdx.y][warp][16 x 128]; all zero between launches
  unsigned* arrivals;  // [split][blockIdx.y][warp]; all zero between launches
};

using Ring = HopperRing<kStages, kStageBytes>;

template <class Input>
__device__ void produce(const CUtensorMap& map_a, const Arguments& in, const TileSpan& span,
                        int tiles, const Ring& ring, int thread) {
  constexpr int kChunks = kFeatures * sizeof(Input) / 16;
  constexpr int kRowsPerStep = kWarpgroup / kChunks;
  const int chunk = thread % kChunks, first_row = thread / kChunks;
  const std::int64_t feature = std::int64_t{blockIdx.y} * kFeatures + chunk * 8;
  const char* const b = static_cast<const char*>(in.b) + feature * sizeof(Input);
  const bool inside = feature < in.n;
  mbarrier::Cursor fill, publish;
  const auto publish_next = [&] {
    ring.publish(publish);
    ring.advance(publish);
  };
  for (int t = 0; t < tiles; ++t) {
    ring.wait_empty(fill);
    char* const stage = ring.stage(fill.stage);
    const std::int32_t tile = span.first_tile + t;
    if (thread == 0) {
      std::uint64_t* const full = ring.full(fill.stage);
      mbarrier::arrive_expect(full, kPanelBytes);
      const std::int32_t at[2] = {0, tile * kWindowRows};
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, stage, &map_a, at, full);
    }
    const auto panel = static_cast<std::uint32_t>(__cvta_generic_to_shared(stage)) + kPanelBytes +
                       chunk / 8 * kPanelBytes;
#pragma unroll
    for (int i = 0; i < kTileColumns / kRowsPerStep; ++i) {
      const int row = first_row + i * kRowsPerStep;
      const std::int32_t column = in.col_idx[std::int64_t{tile} * kTileColumns + row];
      ptx::cp_async_cg_16_if(inside && column >= 0,
                             panel + row * kLineBytes + (chunk % 8 ^ row % 8) * 16,
                             b + column * in.b_row_bytes);
    }
    ptx::cp_async_commit_group();
    ring.advance(fill);
    if (t >= kLag) {
      ptx::cp_async_wait_group<kLag>();
      publish_next();
    }
  }
  ptx::cp_async_wait_group<0>();
  for (int t = max(0, tiles - kLag); t < tiles; ++t) publish_next();
}

template <class Input>
__device__ void consume(const Arguments& in, const TileSpan& span, int tiles, const Ring& ring) {
  constexpr int kAccumulators = kFeatures / 2;
  constexpr int kGroup = 8 * kLineBytes, kSteps = kTileColumns / 16;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float d[kAccumulators];
  mbarrier::Cursor at;
  for (int t = 0; t < tiles; ++t) {
    ring.wait_full(at);
    const char* const stage = ring.stage(at.stage);
    const std::uint64_t a = ptx::wgmma_descriptor(stage, 0, kGroup);
    const std::uint64_t b = ptx::wgmma_descriptor(stage + kPanelBytes, kPanelBytes, kGroup);
    ptx::keep_in_registers(d);
    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < kSteps; ++i)
      ptx::wgmma_mma_async<Input, ptx::Major::mn, kFeatures>(
          d, ptx::wgmma_descriptor_advance(a, i * 32),
          ptx::wgmma_descriptor_advance(b, i * 16 * kLineBytes), t > 0 || i > 0);
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<0>();
    ptx::keep_in_registers(d);
    ring.release(at.stage);
    ring.advance(at);
  }

  if (span.split >= 0) {
    const std::int64_t slot = std::int64_t{span.split} * gridDim.y + blockIdx.y;
    const std::int64_t of_warp = slot * kConsumerWarps + warp;
    const PartialSums partial = {.own = in.sums + (of_warp * 32 * kAccumulators + lane * 4),
                                 .arrivals = in.arrivals + of_warp,
                                 .parts = in.splits[span.split].ctas};
    if (!arrive_and_sum<128>(partial, lane, d)) return;
  }

  const std::int64_t feature = std::int64_t{blockIdx.y} * kFeatures + lane % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    std::int64_t row =
        std::int64_t{span.first_window} * kWindowRows + warp * 16 + half * 8 + lane / 4;
    if (row >= in.rows) continue;
    if (in.row_ids != nullptr) row = in.row_ids[row];
#pragma unroll
    for (int j = 0; j < kFeatures / 8; ++j)
      if (feature + j * 8 < in.n)
        __stcs(reinterpret_cast<float2*>(in.c + row * in.ldc + feature + j * 8),
               make_float2(d[4 * j + 2 * half], d[4 * j + 2 * half + 1]));
  }
}

template <class Input>
__global__ void __launch_bounds__(2 * kWarpgroup, 2)
    paper_kernel(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ Arguments in) {
  extern __shared__ char shared[];
  __shared__ RingBarriers<kStages> barriers;
  const Ring ring(barriers, shared + (1024 - __cvta_generic_to_shared(shared) % 1024) % 1024);
  // A stage is full when the issuer's copy of A and every producer's rows have arrived.
  ring.start(1 + kWarpgroup, kConsumerWarps);
  const TileSpan span = in.spans[blockIdx.x];
  const int tiles = span.tiles & ~TileSpan::kShared;
  ptx::griddepcontrol_wait();
  with_roles<kWarpgroup>([&](int thread) { produce<Input>(map_a, in, span, tiles, ring, thread); },
                         [&] { consume<Input>(in, span, tiles, ring); });
}

// ---- Host adapter -------------------------------------------------------------------------------

using PaperKernel = decltype(&paper_kernel<__half>);

PaperKernel kernel_for(Precision precision) {
  switch (precision) {
    case Precision::fp16: return paper_kernel<__half>;
    case Precision::bf16: return paper_kernel<__nv_bfloat16>;
    default: break;
  }
  throw Error(fmt::format("async_wcsr_paper does not multiply {}", to_string(precision)));
}

// A on the device and the cut of its windows, the same for every N.
struct Windows {
  Windows(const SparseOperand& a, int part, Device& device, StageTimer& stages)
      : rows(a.m()), tiles_per_part(part), kernel(kernel_for(a.precision)) {
    Wcsr host;
    TileWork work;
    {
      const auto timed = stages.scope("build");
      host = Wcsr::build(*a.a, {kWindowRows, kTileColumns, storage_type(a.precision)});
      // A span is one window or a part of one: windows are not gathered into spans.
      work = cut_windows(host.window_ptr, {.team = 1,
                                           .span_tiles = 1,
                                           .whole_tiles = part,
                                           .part_tiles = part,
                                           .split_tiles = part});
    }
    stacked_tiles = host.tiles();
    const std::int64_t stacked_rows = stacked_tiles * kWindowRows;
    if (stacked_rows > std::numeric_limits<std::int32_t>::max())
      throw Error(fmt::format("async_wcsr_paper: {} rows of stacked tiles, at most 2^31 - 1",
                              stacked_rows));
    const auto timed = stages.scope("upload");
    blocks = static_cast<unsigned>(work.spans.size());
    split_count = work.splits.size();
    spans = device.upload(work.spans);
    splits = device.upload(work.splits);
    col_idx = device.upload(host.col_idx);
    values = device.upload(host.values16);
    if (!a.row_ids.empty()) row_ids = device.upload(a.row_ids);
    stats = host.stats();
    device.synchronize();
    if (blocks > 0)
      map = make_tensor_map(
          values.data(), host.shape.value_type,
          std::array{std::uint64_t{kTileColumns}, static_cast<std::uint64_t>(stacked_rows)},
          std::array{std::uint64_t{kLineBytes}},
          std::array{std::uint32_t{kTileColumns}, std::uint32_t{kWindowRows}},
          {.swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
  }

  std::int64_t rows;
  int tiles_per_part;
  PaperKernel kernel;
  std::int64_t stacked_tiles = 0;
  unsigned blocks = 0;
  std::size_t split_count = 0;
  FormatStats stats;
  Buffer spans, splits, col_idx, values, row_ids;
  CUtensorMap map{};
};

class AsyncWcsrPaperPlan final : public Plan {
 public:
  AsyncWcsrPaperPlan(const Windows& a, std::int64_t n, Device& device, StageTimer& stages)
      : a_(a), n_tiles_(static_cast<unsigned>((n + kFeatures - 1) / kFeatures)) {
    const auto timed = stages.scope("upload");
    const std::size_t slots = a.split_count * n_tiles_;
    sums_ = device.allocate(slots * kWindowRows * kFeatures * sizeof(float));
    arrivals_ = device.allocate(slots * kConsumerWarps * sizeof(unsigned));
    device.fill_bytes(sums_.data(), 0, sums_.bytes());
    device.fill_bytes(arrivals_.data(), 0, arrivals_.bytes());
    device.synchronize();
    arguments_ = {.spans = a.spans.as<TileSpan>(),
                  .splits = a.splits.as<TileSplit>(),
                  .col_idx = a.col_idx.as<std::int32_t>(),
                  .row_ids = a.row_ids.as<std::int32_t>(),
                  .rows = a.rows,
                  .b = nullptr,
                  .b_row_bytes = 0,
                  .c = nullptr,
                  .ldc = 0,
                  .n = n,
                  .sums = sums_.as<float>(),
                  .arrivals = arrivals_.as<unsigned>()};
    report_.device_bytes +=
        sum_of_bytes(a.spans, a.splits, a.col_idx, a.values, a.row_ids, sums_, arrivals_);
    report_.format = a.stats;
    report_.params["part"] = fmt::format("{}", a.tiles_per_part);
    report_.issued_flops = 2.0 * static_cast<double>(a.stacked_tiles) * kTileColumns * kWindowRows *
                           kFeatures * n_tiles_;
    report_.metrics["split_windows"] = static_cast<double>(a.split_count);
  }

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    if (a_.blocks == 0) return;
    Arguments in = arguments_;
    in.b = b.data;
    in.b_row_bytes = b.ld * static_cast<std::int64_t>(bytes_of(b.type));
    in.c = static_cast<float*>(c.data);
    in.ldc = c.ld;
    SPMMBENCH_CUDA(
        cudaFuncSetAttribute(a_.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
    launch_dependent(a_.kernel, dim3(a_.blocks, n_tiles_), dim3(2 * kWarpgroup), kSharedBytes,
                     stream, true, a_.map, in);
  }

  PlanReport report() const override { return report_; }

 private:
  const Windows& a_;
  unsigned n_tiles_;
  Buffer sums_, arrivals_;
  Arguments arguments_{};
  PlanReport report_;
};

class AsyncWcsrPaperPrepared final : public Prepared {
 public:
  AsyncWcsrPaperPrepared(const SparseOperand& a, int part, Device& device, StageTimer& stages)
      : windows_(a, part, device, stages), device_(device) {}

  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) override {
    return std::make_unique<AsyncWcsrPaperPlan>(windows_, shape.n, device_, stages);
  }

 private:
  Windows windows_;
  Device& device_;
};

const auto kPart =
    integer_option("part", 16, 1, 32, "tiles of 64 columns per block; longer windows are split");

class AsyncWcsrPaper final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo&) const override {
    if (problem.n > kMaxGridY * kFeatures)
      return Support::no(fmt::format("N above {}", kMaxGridY * kFeatures));
    // The worst case: every nonzero has a column of its own, and the last tile of every window is
    // not full.
    const std::int64_t windows = (problem.m() + kWindowRows - 1) / kWindowRows;
    const std::int64_t columns = problem.nnz() + windows * kTileColumns;
    return Support::yes(static_cast<std::size_t>(columns * (4 + 2 * kWindowRows)));
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options& options, Device& device,
                                    StageTimer& stages) const override {
    const int part = kPart(options);
    return std::make_unique<AsyncWcsrPaperPrepared>(a, part, device, stages);
  }

 private:
  KernelInfo info_ = {
      .name = "async_wcsr_paper",
      .summary = "windows of 64 rows, A by TMA, rows of B by cp.async, wgmma: as published",
      .source = "AsyncSparse, arXiv 2604.17834",
      .purpose = "reproduces AsyncSparse",
      .min_compute_capability = 90,
      .exact_architecture = true,
      .precisions = {Precision::fp16, Precision::bf16},
      .accumulation = Accumulation::fp32_tensor_core,
      .writes_row_ids = true,
      .options = {kPart},
  };
};

SPMMBENCH_REGISTER_KERNEL(AsyncWcsrPaper);

}  // namespace
}  // namespace spmmbench
