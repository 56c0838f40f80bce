// gather_mma: weights that are mostly zeros times few columns of B (N <= 16), on the tensor cores,
// without ever making A dense. Every step takes 32 nonzeros, 8 each of 4 rows, and the 32 rows of B
// that they need. Rows of B lie in shared memory, ldmatrix gathers them by address, and each column
// of the A operand holds one nonzero, in the row that it belongs to. So the cost follows the
// nonzeros, not the positions: 3 bytes, 2 in fp8, and an eighth of a turn of shared memory for each
// nonzero.
//
// docs/kernels/gather_mma.md has the pictures and what was measured.

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "common/dependent_launch.hpp"
#include "common/grid_limit.hpp"
#include "common/resident_csr.hpp"
#include "gather_mma/device.cuh"
#include "gather_mma/device_build.hpp"
#include "gpu/cuda_check.hpp"
#include "ptx/sm90a.cuh"
#include "spmmbench/registry.hpp"

namespace spmmbench::gather_mma {
namespace {

using Streams = SlotStreams;

// With a smaller share of nonzeros the eight slots of a row are filled too unevenly.
const auto kMinFill =
    real_option("min_fill", "0.02", 0, 1, "least share of nonzeros in large matrices");
constexpr std::int64_t kSmallPositions = std::int64_t{1} << 24;  // never refused for fill

using Multiply = void (*)(gather_mma::Arguments, DenseView);
Multiply choose_multiply(ElementType type, int planes) {
  if (type == ElementType::f16)
    return planes == 1 ? gather_mma::multiply<__half, 1> : gather_mma::multiply<__half, 2>;
  if (type == ElementType::e4m3)
    return planes == 1 ? gather_mma::multiply<__nv_fp8_e4m3, 1>
                       : gather_mma::multiply<__nv_fp8_e4m3, 2>;
  return planes == 1 ? gather_mma::multiply<__nv_bfloat16, 1>
                     : gather_mma::multiply<__nv_bfloat16, 2>;
}

int planes_of(std::int64_t n) { return n <= gather_mma::kPlaneColumns ? 1 : 2; }
int columns_of(std::int64_t n) { return planes_of(n) * gather_mma::kPlaneColumns; }
std::int64_t tiles_of(std::int64_t n) { return (n + columns_of(n) - 1) / columns_of(n); }

// A on the device, the same for every shape.
struct Matrix {
  Matrix(const SparseOperand& a, Device& device, StageTimer& stages)
      : type(storage_type(a.precision)), scale(a.scale()), sm_count(device.info().sm_count) {
    const ResidentCsr csr(a, device, stages);
    const auto timed = stages.scope("build");
    streams = gather_mma::build_streams(csr.view(), sm_count, gather_mma::kWarps, device);
    arguments = {.block_chunk = streams.block_chunk.as<std::int32_t>(),
                 .ranges = streams.ranges.as<Streams::Range>(),
                 .pieces = streams.pieces.as<Streams::Piece>(),
                 .starts = streams.starts.as<Streams::Start>(),
                 .words = streams.words.as<std::uint32_t>(),
                 .piece_count = streams.piece_count,
                 .chunk_cols = streams.chunk_cols,
                 .partial = nullptr};
  }

  std::size_t bytes() const {
    return sum_of_bytes(streams.block_chunk, streams.ranges, streams.pieces, streams.starts,
                        streams.words, streams.part_ptr, streams.parts);
  }

  ElementType type;
  float scale;
  int sm_count;
  gather_mma::DeviceStreams streams;
  gather_mma::Arguments arguments{};
};

class GatherMmaPlan final : public Plan {
 public:
  GatherMmaPlan(const Matrix& a, std::int64_t n, Device& device)
      : a_(a), multiply_(choose_multiply(a.type, planes_of(n))), n_(n), arguments_(a.arguments) {
    SPMMBENCH_CUDA(cudaFuncSetAttribute(reinterpret_cast<const void*>(multiply_),
                                        cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        gather_mma::shared_bytes(planes_of(n))));
    partial_ = device.allocate(tiles_of(n) * a.arguments.piece_count * Streams::kRows *
                               columns_of(n) * sizeof(float));
    arguments_.partial = partial_.as<float>();
  }

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    if (a_.arguments.piece_count > 0)
      launch_dependent(
          multiply_,
          dim3(static_cast<unsigned>(a_.streams.block_count), static_cast<unsigned>(tiles_of(n_))),
          dim3(gather_mma::kThreads), gather_mma::shared_bytes(planes_of(n_)), stream, true,
          arguments_, b);
    // With one tile, a block on every multiprocessor finds room beside `multiply` and waits there.
    const std::int64_t most =
        (tiles_of(n_) == 1 ? 1 : gather_mma::kAddBlocks) * std::int64_t{a_.sm_count};
    const std::int64_t items =
        c.rows * ((c.cols + gather_mma::kPlaneColumns - 1) / gather_mma::kPlaneColumns);
    const int team = team_of(items, most * gather_mma::kAddThreads);
    const std::int64_t blocks =
        std::min(most, (items * team + gather_mma::kAddThreads - 1) / gather_mma::kAddThreads);
    visit_element_type(c.type, [&](auto* tag) {
      launch_dependent(gather_mma::add_parts_by<std::remove_pointer_t<decltype(tag)>>(team),
                       dim3(static_cast<unsigned>(blocks)), dim3(gather_mma::kAddThreads), 0,
                       stream, true, arguments_.partial, arguments_.piece_count, columns_of(n_),
                       a_.streams.part_ptr.as<std::int32_t>(), a_.streams.parts.as<std::int32_t>(),
                       a_.scale * b.scale, c);
    });
  }

  PlanReport report() const override {
    PlanReport report;
    report.format = a_.streams.stats;
    report.device_bytes = a_.bytes() + partial_.bytes();
    // Each mma multiplies 16 x 16, of which 16 are nonzeros.
    report.issued_flops = 2.0 * Streams::kRows * static_cast<double>(a_.streams.stats.stored) *
                          static_cast<double>(tiles_of(n_) * columns_of(n_));
    report.metrics["pieces"] = static_cast<double>(a_.arguments.piece_count);
    return report;
  }

 private:
  // Lanes for each row of add_parts: as many as its longest row has use for, while the threads
  // have at most one row each.
  int team_of(std::int64_t items, std::int64_t threads) const {
    int team = 1;
    while (team < gather_mma::kMostTeam && 2 * team * items <= threads &&
           team * gather_mma::kAhead < a_.streams.most_parts)
      team *= 2;
    return team;
  }

  const Matrix& a_;
  Multiply multiply_;
  std::int64_t n_;
  Buffer partial_;
  gather_mma::Arguments arguments_;
};

class GatherMmaPrepared final : public Prepared {
 public:
  GatherMmaPrepared(const SparseOperand& a, Device& device, StageTimer& stages)
      : a_(a, device, stages), device_(device) {}

  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) override {
    const auto timed = stages.scope("upload");
    return std::make_unique<GatherMmaPlan>(a_, shape.n, device_);
  }

 private:
  Matrix a_;
  Device& device_;
};

class GatherMma final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo& device) const override {
    if (tiles_of(problem.n) > kMaxGridY)
      return Support::no(fmt::format("N above {}", kMaxGridY * columns_of(problem.n)));
    const std::int64_t chunks = Streams::chunks(problem.k());
    const double positions = static_cast<double>(problem.m()) * static_cast<double>(problem.k());
    const double fill = static_cast<double>(problem.nnz()) / std::max(1.0, positions);
    if (positions > static_cast<double>(kSmallPositions) && fill < kMinFill(problem.options))
      return Support::no(
          fmt::format("{:.2g} % nonzeros, less than min_fill: too few to fill a row's slots evenly",
                      100 * fill));
    // At worst all nonzeros of a row want the same slot, and every one needs a zero on the way.
    const std::int64_t runs = std::min(problem.nnz(), problem.m() * chunks);
    const std::int64_t slots = Streams::kOctet * (problem.nnz() + 2 * runs);
    const std::int64_t warps = std::int64_t{device.sm_count + chunks} * gather_mma::kWarps;
    const std::int64_t pieces = runs / Streams::kRows + chunks + warps;
    return Support::yes(static_cast<std::size_t>(
        (1 + static_cast<std::int64_t>(bytes_of(storage_type(problem.precision)))) * slots +
        pieces * Streams::kRows * (4 + 4 * columns_of(problem.n) * tiles_of(problem.n))));
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options&, Device& device,
                                    StageTimer& stages) const override {
    return std::make_unique<GatherMmaPrepared>(a, device, stages);
  }

 private:
  KernelInfo info_ = {
      .name = "gather_mma",
      .summary = "few columns, mostly zeros: nonzeros times gathered rows of B on tensor cores",
      .source = "spmmbench",
      .min_compute_capability = 90,
      .exact_architecture = true,
      .precisions = {Precision::fp16, Precision::fp8_e4m3, Precision::bf16},
      .c_types = {ElementType::f32, ElementType::f16, ElementType::bf16},
      .layouts = {Layout::row_major, Layout::col_major},
      .accumulation = Accumulation::fp32_tensor_core,
      .promoted_columns = 1,  // fp8 is multiplied as fp16
      .prepares_on_device = true,
      .options = {kMinFill},
  };
};

SPMMBENCH_REGISTER_KERNEL(GatherMma);

}  // namespace
}  // namespace spmmbench::gather_mma
