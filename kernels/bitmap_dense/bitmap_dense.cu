// bitmap_dense: unstructured pruned weights, loaded as bits and nonzeros, multiplied as a dense
// matrix on the tensor cores ("load as sparse, compute as dense", Flash-LLM, VLDB 2024; SpInfer,
// EuroSys 2025). The format and the decoder are our own (bitmap_dense/format.hpp): values wait in
// one queue per shared-memory bank, so that a warp decodes into its A fragments without conflicts.
//
// docs/kernels/bitmap_dense.md has the pictures.

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bitmap_dense/bytes.hpp"
#include "bitmap_dense/device.cuh"
#include "bitmap_dense/device_build.hpp"
#include "common/dependent_launch.hpp"
#include "common/grid_limit.hpp"
#include "common/panel_schedule.hpp"
#include "common/resident_csr.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/tensor_map.hpp"
#include "ptx/sm90a.cuh"
#include "spmmbench/registry.hpp"

namespace spmmbench::bitmap_dense {
namespace {

namespace bitmap = bitmap_dense;

// Below this share of nonzeros most of the bytes read are bits, and formats with indices win.
const auto kMinFill =
    real_option("min_fill", "0.01", 0, 1, "least share of nonzeros in large matrices");
constexpr const char* kPairs = "pairs";
constexpr const char* kValues = "values";
const auto kStored =
    auto_choice_option("stored", {kPairs, kValues}, "pairs of columns, or single nonzeros");
constexpr std::int64_t kSmallPositions = std::int64_t{1} << 26;  // never refused for fill

// ---- Variants ----------------------------------------------------------------------------------

struct Variant {
  ElementType type;
  std::string stored;
  Layout layout_b;
  PanelTiling tiling;
  int threads, shared_bytes;
  int partial_vectors;  // of 16 bytes, a lane's sums
  void (*multiply)(bitmap::Arguments, CUtensorMap, DenseView);
};

template <class T, Layout kLayout, int kTileN, class Queues>
Variant variant(ElementType type) {
  using Shape = bitmap::Shape<T, kLayout, kTileN, Queues>;
  return {type,
          Queues::kPairs ? kPairs : kValues,
          kLayout,
          {.warps = Shape::kWarps,
           .tile_columns = kTileN,
           .unit_steps = BitmapPanels::kGroupSteps,
           .piece_units = bitmap::kPieceUnits,
           .part_units = bitmap::kPartUnits},
          Shape::kThreads,
          Shape::kSharedBytes,
          bitmap::kRowFragments * Shape::kAccumulators / 4,
          bitmap::multiply_panels<Shape>};
}

template <class T, int kTileN, class Queues>
void add_layouts(std::vector<Variant>& out, ElementType type) {
  out.push_back(variant<T, Layout::row_major, kTileN, Queues>(type));
  out.push_back(variant<T, Layout::col_major, kTileN, Queues>(type));
}
// Narrowest first.
template <class T>
void add_variants(std::vector<Variant>& out, ElementType type) {
  add_layouts<T, 16, PairQueues>(out, type);
  add_layouts<T, 32, PairQueues>(out, type);
  add_layouts<T, 64, PairQueues>(out, type);
  add_layouts<T, 128, PairQueues>(out, type);
  add_layouts<T, 256, PairQueues>(out, type);
  add_layouts<T, 16, ValueQueues>(out, type);
  add_layouts<T, 32, ValueQueues>(out, type);
  add_layouts<T, 64, ValueQueues>(out, type);
}

// A has two neighbouring columns where 16-bit values have one. Tiles of 128 columns would need more
// registers than there are, for the sums of a step besides all others.
template <class Queues>
void add_fp8_variants(std::vector<Variant>& out) {
  constexpr auto kType = ElementType::e4m3;
  out.push_back(variant<__nv_fp8_e4m3, Layout::col_major, 16, Queues>(kType));
  out.push_back(variant<__nv_fp8_e4m3, Layout::col_major, 32, Queues>(kType));
  out.push_back(variant<__nv_fp8_e4m3, Layout::col_major, 64, Queues>(kType));
}

const Variant& choose_variant(const Problem& problem, const DeviceInfo& device) {
  static const std::vector<Variant> all = [] {
    std::vector<Variant> out;
    add_variants<__half>(out, ElementType::f16);
    add_variants<__nv_bfloat16>(out, ElementType::bf16);
    add_fp8_variants<PairQueues>(out);
    add_fp8_variants<ValueQueues>(out);
    return out;
  }();
  const double entries = static_cast<double>(problem.m()) * static_cast<double>(problem.k());
  const auto places = bitmap::places_of(entries, static_cast<double>(problem.nnz()),
                                        storage_type(problem.precision));
  const bool values =
      bitmap::prefers_values(places.count, places.fill, static_cast<double>(problem.n),
                             static_cast<double>(device.l2_bytes));
  const std::string stored = kStored(problem.options).value_or(values ? kValues : kPairs);
  return narrowest_tile(all, problem.n, [&](const Variant& v) {
    return v.type == storage_type(problem.precision) && v.layout_b == problem.layout &&
           v.stored == stored;
  });
}

// ---- Plan --------------------------------------------------------------------------------------

class BitmapDensePlan final : public Plan {
 public:
  BitmapDensePlan(const Problem& problem, Device& device, StageTimer& stages)
      : variant_(choose_variant(problem, device.info())), scale_of_a_(problem.scale()) {
    SPMMBENCH_CUDA(cudaFuncSetAttribute(
        variant_.multiply, cudaFuncAttributeMaxDynamicSharedMemorySize, variant_.shared_bytes));
    if (variant_.stored == kPairs) load<PairQueues>(problem, device, stages);
    else load<ValueQueues>(problem, device, stages);
  }

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    if (blocks_ == 0) {  // A has no columns, or C no elements
      SPMMBENCH_CUDA(
          cudaMemsetAsync(c.data, 0, c.bytes(), static_cast<cudaStream_t>(stream.handle)));
      return;
    }
    if (b.data != b_.data || b.ld != b_.ld) {
      const bool by_column = b.layout == Layout::col_major;
      const auto lines =
          static_cast<std::uint32_t>(by_column ? variant_.tiling.tile_columns : bitmap::kStageK);
      map_b_ = make_tensor_map(by_column ? b : with_whole_boxes(b, bitmap::kStageK), lines,
                               bitmap::kLineBytes / static_cast<int>(bytes_of(b.type)),
                               {.swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
      b_ = b;
    }
    arguments_.scale = scale_of_a_ * b.scale;
    launch_dependent(variant_.multiply, dim3(static_cast<unsigned>(blocks_)),
                     dim3(static_cast<unsigned>(variant_.threads)), variant_.shared_bytes, stream,
                     true, arguments_, map_b_, c);
  }

  PlanReport report() const override { return report_; }

 private:
  template <class Queues>
  void load(const Problem& problem, Device& device, StageTimer& stages) {
    const PanelTiling& tiling = variant_.tiling;
    const std::int64_t steps = BitmapPanels::panel_steps(problem.k(), variant_.type);
    const ResidentCsr a(problem, device, stages);
    PanelSchedule schedule;
    bitmap::DeviceQueues queues;
    {
      const auto timed = stages.scope("build");
      schedule = make_panel_schedule(tiling, BitmapPanels::panels(problem.m()), steps, problem.n,
                                     device.info().sm_count);
      std::vector<BitmapPanels::Range> ranges;
      for (const auto& range : schedule.ranges)
        ranges.push_back({range.panel, range.first_step, range.steps});
      queues = bitmap::build_queues<Queues>(a.view(), ranges, device);
      std::vector<std::int32_t> first_ranges;
      for (int block = 0; block < schedule.blocks(); ++block)
        first_ranges.push_back(schedule.pieces[schedule.piece_ptr[block]].first_range);
      first_segments_ = bitmap::copy_segments(queues, first_ranges, tiling.warps, device);
    }
    const FormatStats stats = Queues::stats_of(problem.m(), problem.nnz(),
                                               {.segments = queues.segment_count,
                                                .blocks = queues.block_count,
                                                .words = BitmapPanels::kLanes * queues.levels,
                                                .type = variant_.type});
    segments_ = std::move(queues.segments);
    queue_blocks_ = std::move(queues.blocks);
    words_ = std::move(queues.words);
    blocks_ = schedule.blocks();
    const auto timed = stages.scope("upload");
    pieces_ = device.upload(schedule.pieces);
    piece_ptr_ = device.upload(schedule.piece_ptr);
    partial_ = device.allocate(schedule.tiles * std::size_t{32} * variant_.partial_vectors *
                               sizeof(float4));
    arrivals_ = device.allocate(schedule.tiles * sizeof(unsigned));
    device.fill_bytes(arrivals_.data(), 0, arrivals_.bytes());
    device.synchronize();
    arguments_ = {.pieces = pieces_.as<PanelPiece>(),
                  .piece_ptr = piece_ptr_.as<std::int32_t>(),
                  .segments = segments_.as<BitmapPanels::Segment>(),
                  .first_segments = first_segments_.as<BitmapPanels::Segment>(),
                  .blocks = queue_blocks_.as<char>(),
                  .words = words_.as<std::uint32_t>(),
                  .workspace = {partial_.as<float>(), arrivals_.as<unsigned>()}};
    describe(problem, stats, schedule);
  }

  void describe(const Problem& problem, const FormatStats& format, const PanelSchedule& schedule) {
    report_.format = format;
    report_.params = {{"tile_n", std::to_string(variant_.tiling.tile_columns)},
                      {"stored", variant_.stored}};
    const std::int64_t column_tiles =
        (problem.n + variant_.tiling.tile_columns - 1) / variant_.tiling.tile_columns;
    report_.issued_flops = 2.0 * static_cast<double>(report_.format->tiles) *
                           BitmapPanels::kStepPositions * BitmapPanels::columns_in(variant_.type) *
                           static_cast<double>(column_tiles * variant_.tiling.tile_columns);
    report_.metrics["pieces"] = static_cast<double>(schedule.pieces.size());
    report_.device_bytes += sum_of_bytes(pieces_, piece_ptr_, segments_, first_segments_,
                                         queue_blocks_, words_, partial_, arrivals_);
  }

  const Variant& variant_;
  float scale_of_a_;
  int blocks_ = 0;
  PlanReport report_;
  Buffer pieces_, piece_ptr_, segments_, first_segments_, queue_blocks_, words_, partial_,
      arrivals_;
  DenseView b_;  // of map_b_
  CUtensorMap map_b_{};
  bitmap::Arguments arguments_{};
};

// ---- Kernel ------------------------------------------------------------------------------------

class BitmapDense final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo& device) const override {
    if (is_scaled(problem.precision) && problem.layout == Layout::row_major)
      return Support::no("wgmma reads 8-bit operands along K: needs column-major B and C");
    const Variant& variant = choose_variant(problem, device);
    const PanelTiling& tiling = variant.tiling;
    const std::int64_t panels = BitmapPanels::panels(problem.m());
    const std::int64_t steps = BitmapPanels::panel_steps(problem.k(), variant.type);
    const std::int64_t positions = (panels + tiling.warps) * (steps + BitmapPanels::kBlockSteps) *
                                   BitmapPanels::kStepPositions;
    const double fill =
        static_cast<double>(problem.nnz()) / std::max(1.0, static_cast<double>(positions));
    if (positions > kSmallPositions && fill < kMinFill(problem.options))
      return Support::no(
          fmt::format("{:.2g} % nonzeros, less than min_fill: bits of empty positions "
                      "are more than an index per nonzero",
                      100 * fill));
    if (problem.n > kMostNumberedColumns)
      return Support::no(fmt::format("N above {}", kMostNumberedColumns));
    // A nonzero is stored with its neighbour at most. Padding for queues that lag: at most every
    // position is stored, a tenth more where rows are alike.
    const std::int64_t values = std::min(positions, 2 * problem.nnz() + positions / 8);
    const std::int64_t warps = std::int64_t{2} * device.sm_count * tiling.warps;
    // Each warp's last block of a segment may be nearly empty.
    const std::int64_t blocks =
        positions / (BitmapPanels::kStepPositions * BitmapPanels::kBlockSteps) + warps;
    const PanelScheduleSize size =
        panel_schedule_size(tiling, panels, steps, problem.n, device.sm_count);
    return Support::yes(blocks * sizeof(ValueQueues::Block) + 2 * values +
                        size.pieces * sizeof(PanelPiece) +
                        size.tiles * std::size_t{32} * variant.partial_vectors * sizeof(float4) +
                        resident_bytes(problem));
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options& options, Device& device,
                                    StageTimer&) const override {
    return std::make_unique<PreparedPerShape<BitmapDensePlan>>(a, options, device);
  }

 private:
  KernelInfo info_ = {
      .name = "bitmap_dense",
      .summary = "pruned weights: bits and nonzeros, decoded into tensor-core fragments",
      .source = "spmmbench, after Flash-LLM and SpInfer",
      .min_compute_capability = 90,
      .exact_architecture = true,
      .precisions = {Precision::fp16, Precision::fp8_e4m3, Precision::bf16},
      .c_types = {ElementType::f32, ElementType::f16, ElementType::bf16},
      .layouts = {Layout::row_major, Layout::col_major},
      .accumulation = Accumulation::fp32_tensor_core,
      .promoted_columns =
          BitmapPanels::kStepCols * BitmapPanels::columns_in(ElementType::e4m3),  // of a step
      .prepares_on_device = true,
      .options = {kMinFill, kStored},
  };
};

SPMMBENCH_REGISTER_KERNEL(BitmapDense);

}  // namespace
}  // namespace spmmbench::bitmap_dense
