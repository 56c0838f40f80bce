// scatter_mma: pruned weights with scattered zeros times few columns. Nonzeros and 4-bit gaps
// (format/gap_streams.hpp) are scattered into dense tiles in shared memory, one lane per bank, and
// multiplied by tensor cores ("load as sparse, compute as dense", Flash-LLM, VLDB 2024). Format and
// decoder are our own. docs/kernels/scatter_mma.md has the pictures.

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "common/dependent_launch.hpp"
#include "common/panel_schedule.hpp"
#include "gpu/cuda_check.hpp"
#include "scatter_mma/multiply.cuh"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

// Below this share of nonzeros most of the entries are zeros that bridge gaps.
const auto kMinFill =
    real_option("min_fill", "0.01", 0, 1, "least share of nonzeros in large matrices");
constexpr std::int64_t kGroupEntries = sizeof(GapStreams::Group) * 2 / 5;  // 2.5 bytes each
constexpr std::int64_t kSmallPositions = std::int64_t{1} << 26;            // never refused for fill

// ---- Variants ----------------------------------------------------------------------------------

struct Variant {
  ElementType type;
  PanelTiling tiling;
  int slot_b_bytes;  // of packed B
  int shared_bytes;
  int partial_vectors;  // of 16 bytes, a lane's sums of a panel
  void (*multiply)(scatter_mma::Arguments, const char*, std::int64_t, DenseView);
};

template <class T, int kTilesN>
Variant variant(ElementType type) {
  using Shape = scatter_mma::Shape<kTilesN>;
  return {.type = type,
          .tiling = {scatter_mma::kWarps, 8 * kTilesN, 1, scatter_mma::kPieceSlots,
                     scatter_mma::kLeastSlots},
          .slot_b_bytes = Shape::kSlotBBytes,
          .shared_bytes = Shape::kSharedBytes,
          .partial_vectors = scatter_mma::kRowFragments * kTilesN,
          .multiply = scatter_mma::multiply<T, kTilesN>};
}
// Narrowest first.
template <class T>
void add_variants(std::vector<Variant>& out, ElementType type) {
  out.push_back(variant<T, 1>(type));
  out.push_back(variant<T, 2>(type));
}
const Variant& choose_variant(const Problem& problem) {
  static const std::vector<Variant> all = [] {
    std::vector<Variant> out;
    add_variants<__half>(out, ElementType::f16);
    add_variants<__nv_bfloat16>(out, ElementType::bf16);
    return out;
  }();
  return narrowest_tile(
      all, problem.n, [&](const Variant& v) { return v.type == storage_type(problem.precision); });
}

std::int64_t column_tiles(const Problem& problem, const Variant& variant) {
  return (problem.n + variant.tiling.tile_columns - 1) / variant.tiling.tile_columns;
}

// ---- Plan --------------------------------------------------------------------------------------

class ScatterMmaPlan final : public Plan {
 public:
  ScatterMmaPlan(const Problem& problem, Device& device, StageTimer& stages)
      : variant_(choose_variant(problem)) {
    SPMMBENCH_CUDA(cudaFuncSetAttribute(
        variant_.multiply, cudaFuncAttributeMaxDynamicSharedMemorySize, variant_.shared_bytes));
    slots_ = GapStreams::panel_slots(problem.k());
    column_tiles_ = column_tiles(problem, variant_);
    PanelSchedule schedule;
    GapStreams streams;
    {
      const auto timed = stages.scope("build");
      schedule =
          make_panel_schedule(variant_.tiling, GapStreams::panels(problem.m()), slots_, problem.n,
                              std::int64_t{scatter_mma::kBlocksPerSm} * device.info().sm_count);
      std::vector<GapStreams::Range> ranges;
      for (const auto& range : schedule.ranges)
        ranges.push_back({range.panel, range.first_step, range.steps});
      streams = GapStreams::build(*problem.a, variant_.type, ranges);
    }
    blocks_ = schedule.blocks();
    const auto timed = stages.scope("upload");
    pieces_ = device.upload(schedule.pieces);
    piece_ptr_ = device.upload(schedule.piece_ptr);
    segments_ = device.upload(streams.segments);
    groups_ = device.upload(streams.groups);
    ends_ = device.upload(streams.ends);
    partial_ = device.allocate(schedule.tiles * std::size_t{32} * variant_.partial_vectors *
                               sizeof(float4));
    arrivals_ = device.allocate(schedule.arrivals * sizeof(unsigned));
    device.fill_bytes(arrivals_.data(), 0, arrivals_.bytes());
    packed_ = device.allocate(column_tiles_ * tile_bytes());
    device.synchronize();
    arguments_ = {.pieces = pieces_.as<PanelPiece>(),
                  .piece_ptr = piece_ptr_.as<std::int32_t>(),
                  .segments = segments_.as<GapStreams::Segment>(),
                  .groups = groups_.as<GapStreams::Group>(),
                  .ends = ends_.as<std::uint32_t>(),
                  .workspace = {partial_.as<float>(), arrivals_.as<unsigned>()}};
    describe(streams, schedule);
  }

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    if (blocks_ == 0) {  // A has no columns, or C no elements
      SPMMBENCH_CUDA(
          cudaMemsetAsync(c.data, 0, c.bytes(), static_cast<cudaStream_t>(stream.handle)));
      return;
    }
    constexpr std::int64_t kPackThreads = 256;
    const std::int64_t words = tile_bytes() / std::int64_t{sizeof(std::uint32_t)};
    launch_dependent(scatter_mma::pack_b,
                     dim3(static_cast<unsigned>((words + kPackThreads - 1) / kPackThreads),
                          static_cast<unsigned>(column_tiles_)),
                     dim3(kPackThreads), 0, stream, true, b, slots_ * scatter_mma::kSlotSteps,
                     variant_.tiling.tile_columns / 8, packed_.as<std::uint32_t>());
    launch_dependent(variant_.multiply, dim3(static_cast<unsigned>(blocks_)),
                     dim3(32 * scatter_mma::kWarps), variant_.shared_bytes, stream, true,
                     arguments_, packed_.as<char>(), tile_bytes(), c);
  }

  PlanReport report() const override { return report_; }

 private:
  std::int64_t tile_bytes() const { return slots_ * variant_.slot_b_bytes; }

  void describe(const GapStreams& streams, const PanelSchedule& schedule) {
    report_.format = streams.stats();
    report_.params = {{"tile_n", std::to_string(variant_.tiling.tile_columns)}};
    report_.issued_flops = 2.0 * static_cast<double>(report_.format->tiles) *
                           GapStreams::kPanelRows * GapStreams::kSlotCols *
                           static_cast<double>(column_tiles_ * variant_.tiling.tile_columns);
    report_.metrics["pieces"] = static_cast<double>(schedule.pieces.size());
    for (const Buffer* buffer :
         {&pieces_, &piece_ptr_, &segments_, &groups_, &ends_, &partial_, &arrivals_, &packed_})
      report_.device_bytes += buffer->bytes();
  }

  const Variant& variant_;
  int blocks_ = 0;
  std::int64_t slots_ = 0;  // of a panel
  std::int64_t column_tiles_ = 0;
  PlanReport report_;
  Buffer pieces_, piece_ptr_, segments_, groups_, ends_, partial_, arrivals_, packed_;
  scatter_mma::Arguments arguments_{};
};

// ---- Kernel ------------------------------------------------------------------------------------

class ScatterMma final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo& device) const override {
    const Variant& variant = choose_variant(problem);
    const std::int64_t panels = GapStreams::panels(problem.m());
    const std::int64_t slots = GapStreams::panel_slots(problem.k());
    const std::int64_t slot_positions =
        std::int64_t{GapStreams::kPanelRows} * GapStreams::kSlotCols;
    const std::int64_t positions = (panels + variant.tiling.warps) * slots * slot_positions;
    const double fill =
        static_cast<double>(problem.nnz()) / std::max(1.0, static_cast<double>(positions));
    if (positions > kSmallPositions && fill < kMinFill(problem.options))
      return Support::no(
          fmt::format("{:.2g} % nonzeros, less than min_fill: most entries "
                      "would be zeros that bridge gaps",
                      100 * fill));
    // Entries: random zeros take 1.06 to 2 per nonzero and one in 15 positions; streams that differ
    // take more, at most all positions. A segment ends in a group that may be nearly empty. Sums:
    // every block ends at most two shared panels; tiles of columns at most 8 parts.
    const std::int64_t tiles = column_tiles(problem, variant);
    const std::int64_t warps =
        std::int64_t{2} * scatter_mma::kBlocksPerSm * device.sm_count * variant.tiling.warps;
    const std::int64_t segments = std::min(warps + panels, (panels + variant.tiling.warps) * slots);
    const std::int64_t entries =
        std::min(positions, 2 * problem.nnz() + positions / 4) + segments * kGroupEntries;
    const std::int64_t sums = std::max(warps, tiles > 1 ? 8 * panels * tiles : 0);
    const std::int64_t bytes =
        entries * 5 / 2 +
        sums * 32 * variant.partial_vectors * static_cast<std::int64_t>(sizeof(float4)) +
        tiles * slots * variant.slot_b_bytes;
    return Support::yes(static_cast<std::size_t>(bytes));
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options& options, Device& device,
                                    StageTimer&) const override {
    return std::make_unique<PreparedPerShape<ScatterMmaPlan>>(a, options, device);
  }

 private:
  KernelInfo info_ = {
      .name = "scatter_mma",
      .summary = "pruned weights: nonzeros scattered into dense tiles for tensor cores, N <= 16",
      .source = "spmmbench, after Flash-LLM",
      .min_compute_capability = 90,
      .exact_architecture = true,
      .precisions = {Precision::fp16, Precision::bf16},
      .c_types = {ElementType::f32, ElementType::f16, ElementType::bf16},
      .layouts = {Layout::row_major, Layout::col_major},
      .accumulation = Accumulation::fp32_tensor_core,
      .options = {kMinFill},
  };
};

SPMMBENCH_REGISTER_KERNEL(ScatterMma);

}  // namespace
}  // namespace spmmbench
