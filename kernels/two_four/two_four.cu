// two_four: weights in 2:4 structured sparsity (at most two nonzeros in every four neighbours of a
// row) on the sparse tensor cores. A is read as it lies in memory (two_four/format.hpp): 4.5 bytes
// for four positions instead of 8, in fp8 2.5 instead of 4, and nothing to decode.
// docs/kernels/two_four.md has the pictures.

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <vector>

#include "common/dependent_launch.hpp"
#include "common/grid_limit.hpp"
#include "core/two_of_four.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/tensor_map.hpp"
#include "ptx/sm90a.cuh"
#include "spmmbench/registry.hpp"
#include "two_four/device.cuh"

namespace spmmbench::two_four {
namespace {

using two_four::Arguments;

// ---- Variants ----------------------------------------------------------------------------------

struct Variant {
  ElementType type;
  Layout layout;  // of B
  PanelTiling tiling;
  int threads, shared_bytes;
  int warp_rows, warp_sums;  // of a panel of the schedule; sums of a lane
  int box_columns;           // of B
  CUtensorMapSwizzle swizzle_b;
  void (*kernel)(Arguments, CUtensorMap, DenseView);

  std::int64_t panels(std::int64_t rows) const { return (rows + warp_rows - 1) / warp_rows; }
  PanelSchedule schedule(const Problem& problem, int multiprocessors) const {
    return make_panel_schedule(tiling, panels(problem.m()),
                               TwoFour::panel_blocks(problem.k(), type), problem.n,
                               multiprocessors);
  }
  PanelScheduleSize schedule_size(const Problem& problem, int multiprocessors) const {
    return panel_schedule_size(tiling, panels(problem.m()),
                               TwoFour::panel_blocks(problem.k(), type), problem.n,
                               multiprocessors);
  }
  std::size_t partial_bytes(std::int64_t tiles) const {
    return tiles * std::size_t{32} * warp_sums * sizeof(float);
  }
};

template <class T, Layout kLayout, int kTileN>
Variant variant(ElementType type) {
  using Shape = two_four::Shape<T, kLayout, kTileN>;
  return {type,
          kLayout,
          {.warps = Shape::kWarps,
           .tile_columns = kTileN,
           .unit_steps = TwoFour::kUnitBlocks,
           .part_units = two_four::kPartUnits},
          Shape::kThreads,
          Shape::kSharedBytes,
          Shape::kWarpRows,
          Shape::kPanels * Shape::kRegisters,
          Shape::kBoxColumns,
          swizzle_of(Shape::kLineBytes),
          two_four::kernel<Shape>};
}

// Narrowest first.
template <class T, Layout kLayout>
void add_variants(std::vector<Variant>& out, ElementType type) {
  out.push_back(variant<T, kLayout, 16>(type));
  out.push_back(variant<T, kLayout, 32>(type));
  out.push_back(variant<T, kLayout, 64>(type));
  out.push_back(variant<T, kLayout, 128>(type));
}

const Variant& choose_variant(const Problem& problem) {
  static const std::vector<Variant> all = [] {
    std::vector<Variant> out;
    add_variants<__half, Layout::row_major>(out, ElementType::f16);
    add_variants<__half, Layout::col_major>(out, ElementType::f16);
    add_variants<__nv_bfloat16, Layout::row_major>(out, ElementType::bf16);
    add_variants<__nv_bfloat16, Layout::col_major>(out, ElementType::bf16);
    add_variants<__nv_fp8_e4m3, Layout::col_major>(out, ElementType::e4m3);
    return out;
  }();
  return narrowest_tile(all, problem.n, [&](const Variant& v) {
    return v.type == storage_type(problem.precision) && v.layout == problem.layout;
  });
}

// ---- Plan --------------------------------------------------------------------------------------

// A on the device, for every shape.
struct Matrix {
  FormatStats stats;
  Buffer blocks;
  float scale;
};

class TwoFourPlan final : public Plan {
 public:
  TwoFourPlan(const Problem& problem, const Matrix& matrix, Device& device, StageTimer& stages)
      : variant_(choose_variant(problem)), scale_of_a_(matrix.scale) {
    SPMMBENCH_CUDA(cudaFuncSetAttribute(reinterpret_cast<const void*>(variant_.kernel),
                                        cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        variant_.shared_bytes));
    const auto timed = stages.scope("build");
    const PanelSchedule schedule = variant_.schedule(problem, device.info().sm_count);
    blocks_ = schedule.blocks();
    pieces_ = device.upload(schedule.pieces);
    piece_ptr_ = device.upload(schedule.piece_ptr);
    partial_ = device.allocate(variant_.partial_bytes(schedule.tiles));
    arrivals_ = device.allocate(schedule.tiles * sizeof(unsigned));
    device.fill_bytes(arrivals_.data(), 0, arrivals_.bytes());
    device.synchronize();
    arguments_ = {.pieces = pieces_.as<PanelPiece>(),
                  .piece_ptr = piece_ptr_.as<std::int32_t>(),
                  .blocks = matrix.blocks.as<char>(),
                  .panels = static_cast<std::int32_t>(TwoFour::panels(problem.m())),
                  .panel_blocks =
                      static_cast<std::int32_t>(TwoFour::panel_blocks(problem.k(), variant_.type)),
                  .workspace = {partial_.as<float>(), arrivals_.as<unsigned>()},
                  .scale = 1};
    describe(problem, matrix, schedule);
  }

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    if (blocks_ == 0) {  // A has no columns, or C no elements
      SPMMBENCH_CUDA(
          cudaMemsetAsync(c.data, 0, c.bytes(), static_cast<cudaStream_t>(stream.handle)));
      return;
    }
    if (b.data != b_.data || b.ld != b_.ld) {
      const auto columns = static_cast<std::uint32_t>(variant_.box_columns);
      const TensorMapOptions options{.swizzle = variant_.swizzle_b};
      const auto of_k = static_cast<std::uint32_t>(
          visit_two_four_block(b.type, [](auto block) { return block.kCols; }));
      map_b_ = b.layout == Layout::col_major
                   ? make_tensor_map(b, columns, of_k, options)
                   : make_tensor_map(with_whole_boxes(b, columns), of_k, columns, options);
      b_ = b;
    }
    arguments_.scale = scale_of_a_ * b.scale;
    launch_dependent(variant_.kernel, dim3(static_cast<unsigned>(blocks_)),
                     dim3(static_cast<unsigned>(variant_.threads)), variant_.shared_bytes, stream,
                     true, arguments_, map_b_, c);
  }

  PlanReport report() const override { return report_; }

 private:
  void describe(const Problem& problem, const Matrix& matrix, const PanelSchedule& schedule) {
    const std::int64_t tile_n = variant_.tiling.tile_columns;
    const std::int64_t columns = (problem.n + tile_n - 1) / tile_n * tile_n;
    report_.format = matrix.stats;
    report_.params = {{"tile_n", std::to_string(tile_n)}};
    report_.issued_flops =
        2.0 * static_cast<double>(matrix.stats.stored) * static_cast<double>(columns);
    report_.metrics["pieces"] = static_cast<double>(schedule.pieces.size());
    report_.device_bytes = sum_of_bytes(matrix.blocks, pieces_, piece_ptr_, partial_, arrivals_);
  }

  const Variant& variant_;
  float scale_of_a_;
  int blocks_ = 0;
  PlanReport report_;
  Buffer pieces_, piece_ptr_, partial_, arrivals_;
  DenseView b_;  // of map_b_
  CUtensorMap map_b_{};
  Arguments arguments_{};
};

class TwoFourPrepared final : public Prepared {
 public:
  TwoFourPrepared(const SparseOperand& a, const Options& options, Device& device,
                  StageTimer& stages)
      : a_(a), options_(options), device_(device) {
    TwoFour format;
    {
      const auto timed = stages.scope("build");
      format = TwoFour::build(*a.a, storage_type(a.precision));
    }
    const auto timed = stages.scope("upload");
    matrix_ = {format.stats(), device.upload(format.blocks), a.scale()};
    device.synchronize();
  }

  std::unique_ptr<Plan> bind(const spmmbench::Shape& shape, StageTimer& stages) override {
    return std::make_unique<TwoFourPlan>(Problem{a_, shape, options_}, matrix_, device_, stages);
  }

 private:
  SparseOperand a_;
  Options options_;
  Device& device_;
  Matrix matrix_;
};

// ---- Kernel ------------------------------------------------------------------------------------

class TwoFourKernel final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo& device) const override {
    if (is_scaled(problem.precision) && problem.layout == Layout::row_major)
      return Support::no("wgmma reads 8-bit operands along K: needs column-major B and C");
    if (const auto row = first_row_beyond_two_of_four(*problem.a))
      return Support::no(
          fmt::format("not in 2:4: row {} has more than two nonzeros in a group of four", *row));
    if (problem.n > kMostNumberedColumns)
      return Support::no(fmt::format("N above {}", kMostNumberedColumns));
    const Variant& variant = choose_variant(problem);
    const PanelScheduleSize size = variant.schedule_size(problem, device.sm_count);
    return Support::yes(TwoFour::bytes(problem.m(), problem.k(), variant.type) +
                        variant.partial_bytes(size.tiles) + size.pieces * sizeof(PanelPiece) +
                        size.tiles * sizeof(unsigned));
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options& options, Device& device,
                                    StageTimer& stages) const override {
    return std::make_unique<TwoFourPrepared>(a, options, device, stages);
  }

 private:
  KernelInfo info_ = {
      .name = "two_four",
      .summary = "2:4 weights, values and indices straight to the sparse tensor cores (wgmma.sp)",
      .source = "spmmbench",
      .min_compute_capability = 90,
      .exact_architecture = true,
      .precisions = {Precision::fp16, Precision::fp8_e4m3, Precision::bf16},
      .c_types = {ElementType::f32, ElementType::f16, ElementType::bf16},
      .layouts = {Layout::row_major, Layout::col_major},
      .accumulation = Accumulation::fp32_tensor_core,
      .promoted_columns =
          TwoFour::kUnitBlocks * TwoFourBlock<1>::kRowValues,  // nonzeros that a unit has of a row
  };
};

SPMMBENCH_REGISTER_KERNEL(TwoFourKernel);

}  // namespace
}  // namespace spmmbench::two_four
