// dense_cluster: A with its zeros stored, for layers so small that a product takes little longer
// than a launch. K is split over a cluster of CTAs, so that all multiprocessors have a share, and
// the sums are joined through distributed shared memory.
//
// docs/kernels/dense_cluster.md has the pictures.

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "common/dense_copy.hpp"
#include "common/dependent_launch.hpp"
#include "common/grid_limit.hpp"
#include "common/shared_limit.hpp"
#include "dense_cluster/device.cuh"
#include "gpu/cuda_check.hpp"
#include "gpu/tensor_map.hpp"
#include "ptx/sm90a.cuh"
#include "spmmbench/registry.hpp"

namespace spmmbench::dense_cluster {
namespace {

namespace cluster = dense_cluster;

const auto kTileM = auto_choice_option<int>("tile_m", {"64", "128"}, "rows of C of a cluster");
const auto kTileN =
    auto_choice_option<int>("tile_n", {"16", "32", "64", "128"}, "columns of C of a cluster");
const auto kClusterCtas =
    auto_choice_option<int>("cluster", {"1", "2", "4", "8"}, "CTAs that share K");

// Shared memory of a CTA that has a multiprocessor to itself, and of one of two. A multiprocessor
// has 228 KB, of which each CTA costs 1 KB (CUDA C Programming Guide).
constexpr int kWholeSm = 227 * 1024, kHalfSm = 113 * 1024;
constexpr int kMoreThanHalf = kHalfSm + 1024;

// ---- Variants ----------------------------------------------------------------------------------

struct Variant {
  ElementType type;
  cluster::TileB tile_b;
  cluster::Tile tile;
  int threads;
  int stage_bytes, inbox_bytes;
  int box_columns, box_line_bytes;  // of row-major B
  bool packs_rows, stores_chunks;
  using Multiply = void (*)(cluster::Arguments, CUtensorMap, CUtensorMap, CUtensorMap, DenseView);
  Multiply alone, in_cluster;  // a CTA walks all of K, or part of it

  Multiply multiply(int cluster) const { return cluster == 1 ? alone : in_cluster; }
};

template <class T, cluster::TileB kTileB, int kRows, int kColumns>
Variant variant(ElementType type) {
  using Shape = cluster::Shape<T, kTileB, kRows, kColumns>;
  constexpr bool kWhole = cluster::Tile{kRows, kColumns} == cluster::kLargestTile;
  static_assert(2 * Shape::kStageBytes + Shape::kInboxBytes + cluster::kBarrierBytes <=
                    (kWhole ? kWholeSm : kHalfSm),
                "a ring of one stage waits forever");
  return {type,
          kTileB,
          {kRows, kColumns},
          Shape::kThreads,
          Shape::kStageBytes,
          Shape::kInboxBytes,
          Shape::kBoxColumns,
          Shape::kBoxLineBytes,
          Shape::kPacksRows,
          Shape::kStoresChunks,
          cluster::multiply_tiles<Shape, false>,
          cluster::multiply_tiles<Shape, true>};
}

template <class T>
void add_variants(std::vector<Variant>& out, ElementType type) {
  using cluster::TileB;
  constexpr auto& kTiles = cluster::kTiles;
  const auto add_tile = [&]<int kRows, int kColumns>() {
    constexpr cluster::Tile kTile = {kRows, kColumns};
    out.push_back(variant<T, TileB::col_major, kRows, kColumns>(type));
    if constexpr (sizeof(T) == 1) {
      if constexpr (cluster::takes_transposed_b(kTile))
        out.push_back(variant<T, TileB::transposed, kRows, kColumns>(type));
      if constexpr (cluster::takes_turned_b(kTile)) {
        out.push_back(variant<T, TileB::turned, kRows, kColumns>(type));
        out.push_back(variant<T, TileB::turned_narrow, kRows, kColumns>(type));
      }
    } else {
      out.push_back(variant<T, TileB::row_major, kRows, kColumns>(type));
      if constexpr (cluster::takes_narrow_b(kTile))
        out.push_back(variant<T, TileB::narrow, kRows, kColumns>(type));
    }
  };
  const auto add_tiles = [&]<std::size_t... i>(std::index_sequence<i...>) {
    (add_tile.template operator()<kTiles[i].rows, kTiles[i].columns>(), ...);
  };
  add_tiles(std::make_index_sequence<std::size(kTiles)>{});
}

cluster::Extents extents_of(const Problem& problem) {
  return {problem.m(), problem.k(), problem.n, problem.layout,
          static_cast<int>(bytes_of(storage_type(problem.precision)))};
}

const Variant& variant_of(const Problem& problem, const cluster::Tile& tile) {
  static const std::vector<Variant> all = [] {
    std::vector<Variant> out;
    add_variants<__half>(out, ElementType::f16);
    add_variants<__nv_bfloat16>(out, ElementType::bf16);
    add_variants<__nv_fp8_e4m3>(out, ElementType::e4m3);
    add_variants<__nv_fp8_e5m2>(out, ElementType::e5m2);
    return out;
  }();
  return *std::find_if(all.begin(), all.end(), [&](const Variant& v) {
    return v.type == storage_type(problem.precision) &&
           v.tile_b == cluster::tile_b_of(extents_of(problem)) && v.tile == tile;
  });
}

// ---- Plan --------------------------------------------------------------------------------------

class DenseClusterPlan final : public Plan {
 public:
  DenseClusterPlan(const Problem& problem, const DenseView& a, Device& device)
      : split_(cluster::choose_split(extents_of(problem), device.info().sm_count,
                                     {.rows = kTileM(problem.options),
                                      .columns = kTileN(problem.options),
                                      .cluster = kClusterCtas(problem.options)})),
        variant_(variant_of(problem, split_.tile)),
        multiply_(variant_.multiply(split_.cluster)),
        tile_k_(cluster::tile_k(extents_of(problem).value_bytes)),
        scale_of_a_(problem.scale()) {
    report_.device_bytes = a.bytes();
    const std::int64_t k_tiles = cluster::tiles_of(problem.k(), tile_k_);
    const std::int64_t row_tiles = cluster::tiles_of(problem.m(), split_.tile.rows);
    const std::int64_t column_tiles = cluster::tiles_of(problem.n, split_.tile.columns);
    const int room =
        (split_.whole_sm ? kWholeSm : kHalfSm) - cluster::kBarrierBytes - variant_.inbox_bytes;
    arguments_ = {.k_tiles = static_cast<int>(k_tiles),
                  .row_tiles = static_cast<int>(row_tiles),
                  .cluster_log2 = std::countr_zero(static_cast<unsigned>(split_.cluster)),
                  .stages = static_cast<int>(
                      std::min<std::int64_t>({cluster::tiles_of(k_tiles, split_.cluster),
                                              room / variant_.stage_bytes, cluster::kMostStages}))};
    shared_bytes_ =
        cluster::kBarrierBytes + arguments_.stages * variant_.stage_bytes + variant_.inbox_bytes;
    if (split_.whole_sm) shared_bytes_ = std::max(shared_bytes_, kMoreThanHalf);
    blocks_ = static_cast<unsigned>(row_tiles * column_tiles * split_.cluster);
    allow_shared_bytes(multiply_, shared_bytes_);
    map_a_ = make_tensor_map(a, static_cast<std::uint32_t>(split_.tile.rows), tile_k_,
                             {.swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
    report_.params = {{"tile_m", std::to_string(split_.tile.rows)},
                      {"tile_n", std::to_string(split_.tile.columns)},
                      {"cluster", std::to_string(split_.cluster)}};
    report_.issued_flops = 2.0 * static_cast<double>(row_tiles * split_.tile.rows) *
                           static_cast<double>(k_tiles * tile_k_) *
                           static_cast<double>(column_tiles * split_.tile.columns);
  }

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    if (blocks_ == 0) {  // A has no columns, or C no elements
      SPMMBENCH_CUDA(
          cudaMemsetAsync(c.data, 0, c.bytes(), static_cast<cudaStream_t>(stream.handle)));
      return;
    }
    if (b.data != b_.data || b.ld != b_.ld) {
      map_b_ = map_of(b);
      b_ = b;
    }
    if (variant_.stores_chunks && split_.cluster == 1 && (c.data != c_.data || c.ld != c_.ld)) {
      map_c_ = tile_store::map_of(c);
      c_ = c;
    }
    arguments_.scale = scale_of_a_ * b.scale;
    launch_dependent_clusters(multiply_, static_cast<unsigned>(split_.cluster), dim3(blocks_),
                              dim3(static_cast<unsigned>(variant_.threads)), shared_bytes_, stream,
                              arguments_, map_a_, map_b_, map_c_, c);
  }

  PlanReport report() const override { return report_; }

 private:
  CUtensorMap map_of(const DenseView& b) {
    if (variant_.packs_rows) {
      // A line is addressed in 32 bits, and the last tile of k may reach past its end.
      constexpr int kOfRow = cluster::kPackedRowBytes / int{sizeof(cluster::ElementOfLine)};
      const std::int64_t most_rows = std::numeric_limits<std::int32_t>::max() / kOfRow - tile_k_;
      arguments_.b_in_one_line =
          b.ld * static_cast<std::int64_t>(bytes_of(b.type)) == cluster::kPackedRowBytes &&
          b.rows <= most_rows;
      if (arguments_.b_in_one_line) return map_of_line(b.data, b.rows * kOfRow);
    }
    if (variant_.tile_b == cluster::TileB::narrow)
      return make_tensor_map(b, tile_k_, cluster::kNarrowColumns);
    const auto columns = static_cast<std::uint32_t>(split_.tile.columns);
    if (variant_.tile_b == cluster::TileB::col_major)
      return make_tensor_map(b, columns, tile_k_, {.swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
    const auto box_columns = static_cast<std::uint32_t>(variant_.box_columns);
    return make_tensor_map(
        with_whole_boxes(b, box_columns), tile_k_, box_columns,
        {.swizzle = variant_.box_line_bytes < 32 ? CU_TENSOR_MAP_SWIZZLE_NONE
                                                 : swizzle_of(variant_.box_line_bytes)});
  }

  static CUtensorMap map_of_line(void* data, std::int64_t length) {
    constexpr int kPiece = cluster::kLinePieceBytes / int{sizeof(cluster::ElementOfLine)};
    const DenseView line{data, 1, length, length, Layout::row_major, ElementType::f32};
    return make_tensor_map(line, 1, kPiece);
  }

  cluster::Split split_;
  const Variant& variant_;
  Variant::Multiply multiply_;
  std::uint32_t tile_k_;
  float scale_of_a_;
  cluster::Arguments arguments_{};
  unsigned blocks_ = 0;
  int shared_bytes_ = 0;
  PlanReport report_;
  CUtensorMap map_a_{}, map_b_{}, map_c_{};
  DenseView b_, c_;  // of map_b_ and map_c_
};

class DenseClusterPrepared final : public Prepared {
 public:
  DenseClusterPrepared(const SparseOperand& a, const Options& options, Device& device,
                       StageTimer& stages)
      : a_(a), options_(options), device_(device), view_(dense_shape(a)) {
    memory_ = upload_dense(a, view_, device, stages);
    view_.data = memory_.data();
  }

  std::unique_ptr<Plan> bind(const spmmbench::Shape& shape, StageTimer&) override {
    return std::make_unique<DenseClusterPlan>(Problem{a_, shape, options_}, view_, device_);
  }

 private:
  SparseOperand a_;
  Options options_;
  Device& device_;
  DenseView view_;
  Buffer memory_;
};

// ---- Kernel ------------------------------------------------------------------------------------

class DenseCluster final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo& device) const override {
    if (problem.n > kMostNumberedColumns)
      return Support::no(fmt::format("N above {}", kMostNumberedColumns));
    return supports_dense(problem, device);
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options& options, Device& device,
                                    StageTimer& stages) const override {
    return std::make_unique<DenseClusterPrepared>(a, options, device, stages);
  }

 private:
  KernelInfo info_ = {
      .name = "dense_cluster",
      .summary = "small layers: A with its zeros stored, K split over a cluster of CTAs",
      .source = "spmmbench",
      .min_compute_capability = 90,
      .exact_architecture = true,
      .precisions = {Precision::fp16, Precision::fp8_e4m3, Precision::fp8_e5m2, Precision::bf16},
      .c_types = {ElementType::f32, ElementType::f16, ElementType::bf16},
      .layouts = {Layout::row_major, Layout::col_major},
      .accumulation = Accumulation::fp32_tensor_core,
      .promoted_columns = cluster::tile_k(1),
      .options = {kTileM, kTileN, kClusterCtas},
  };
};

SPMMBENCH_REGISTER_KERNEL(DenseCluster);

}  // namespace
}  // namespace spmmbench::dense_cluster
