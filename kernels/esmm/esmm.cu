// esmm: C = A * B for dense-stored A and B, fp32 on CUDA cores, over lists of surviving k-indices.
// From the patterns of both operands (32 rows of A, 32 columns of B) every tile of C knows which
// indices of K can contribute; listing them once turns the rest into a short dense product.
//
//   path=warp   each warp lists and multiplies for its own 32 x 32 tile (esmm/warp_list.cuh)
//   path=block  a CTA lists for 128 x 256 and runs an SGEMM (esmm/block_list.cuh): nearly dense
//
// ESMM's own kernel (see esmm_skip.cu) makes no lists; it tests pattern bytes while it walks over
// K. The products of a skipped k are not formed: an Inf or NaN that only meets zeros of the other
// operand leaves no NaN in C.

#include "esmm/block_list.cuh"
#include "esmm/prepared.cuh"
#include "esmm/warp_list.cuh"
#include "spmmbench/registry.hpp"

namespace spmmbench::esmm {
namespace {

using WarpTile = esmm::WarpList<8, 3>;
constexpr int kWarpTileBlocks = 5;  // per SM
using BlockTile = esmm::BlockList<2, 4, 2, 2, 16, 3>;
constexpr int kBlockTileBlocks = 1;

// Time of a product on the warp path over one on the block path, both with all SMs busy; measured
// on an H200 at 4096^3.
constexpr double kWarpCost = 1.28;

// Products of the SM with the most CTAs, where the tile of a CTA has rows x cols and needs the
// share `needed` of K.
double busiest_sm(std::int64_t m, std::int64_t n, int rows, int cols, int sm_count, double needed) {
  const std::int64_t blocks = ((m + rows - 1) / rows) * ((n + cols - 1) / cols);
  return static_cast<double>((blocks + sm_count - 1) / sm_count) * rows * cols * needed;
}

template <auto kKernel, class T>
void launch_tiles(const esmm::Operands& op, Stream stream) {
  kKernel<<<T::grid(op), T::kThreads, T::kSharedBytes, static_cast<cudaStream_t>(stream.handle)>>>(
      op);
  SPMMBENCH_CUDA_LAUNCHED();
}

const auto kPath = auto_choice_option(
    "path", {"warp", "block"},
    "lists per 32 x 32 tile of a warp or per 128 x 256 tile of a block; auto: by density");
const auto kExtract = choice_option(
    "extract", "none", {"none", "a", "ab"},
    "patterns made inside every launch: none (compute only), a (B's cached), ab (total)");

class EsmmPlan final : public Plan {
 public:
  EsmmPlan(const Problem& problem, Device& device, StageTimer& stages)
      : operands_(problem, device, stages),
        nnz_(problem.nnz()),
        extract_(kExtract(problem.options)),
        path_(kPath(problem.options)),
        sm_count_(device.info().sm_count) {
    SPMMBENCH_CUDA(cudaFuncSetAttribute(esmm::warp_list<WarpTile, kWarpTileBlocks>,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        WarpTile::kSharedBytes));
    SPMMBENCH_CUDA(cudaFuncSetAttribute(esmm::block_list<BlockTile, kBlockTileBlocks>,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        BlockTile::kSharedBytes));
  }

  void inspect_b(const DenseView& b, StageTimer& stages) override {
    operands_.read_patterns(b, stages);
    choose_path(stages);
    operands_.extract(block_, stages);
    if (extract_ == "none") operands_.drop_dense();
  }

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    if (extract_ != "none") operands_.launch_extract_a(block_, stream);
    if (extract_ == "ab") operands_.launch_extract_b(b, stream);
    const esmm::Operands op = operands_.operands(b, c);
    if (block_) {
      launch_tiles<esmm::block_list<BlockTile, kBlockTileBlocks>, BlockTile>(op, stream);
    } else {
      launch_tiles<esmm::warp_list<WarpTile, kWarpTileBlocks>, WarpTile>(op, stream);
    }
  }

  PlanReport report() const override {
    PlanReport r;
    r.device_bytes = operands_.device_bytes();
    r.format = operands_.format(nnz_);
    r.params = {{"path", block_ ? "block" : "warp"}, {"extract", extract_}};
    r.metrics = operands_.metrics();
    r.metrics["warp_tile_needed_fraction"] = warp_needed_;
    r.metrics["block_tile_needed_fraction"] = block_needed_;
    const esmm::Sizes& s = operands_.sizes();
    r.issued_flops = 2.0 * static_cast<double>(s.strips_a * esmm::kStrip) *
                     static_cast<double>(s.strips_b * esmm::kStrip) * static_cast<double>(s.k) *
                     (block_ ? block_needed_ : warp_needed_);
    return r;
  }

 private:
  void choose_path(StageTimer& stages) {
    auto timed = stages.scope("tune");
    warp_needed_ = operands_.needed(1, 1, 1);
    block_needed_ = operands_.needed(BlockTile::kTileA, BlockTile::kTileB, 1);
    const esmm::Sizes& size = operands_.sizes();
    const double warp_cost = kWarpCost * busiest_sm(size.m, size.n, WarpTile::kRows,
                                                    WarpTile::kCols, sm_count_, warp_needed_);
    const double block_cost =
        busiest_sm(size.m, size.n, BlockTile::kRows, BlockTile::kCols, sm_count_, block_needed_);
    block_ = path_ ? *path_ == "block" : block_cost < warp_cost;
  }

  esmm::PatternedOperands operands_;
  std::int64_t nnz_;
  std::string extract_;
  std::optional<std::string> path_;
  int sm_count_;
  bool block_ = false;
  double warp_needed_ = 0;  // fractions of K, mean over the tiles of each path
  double block_needed_ = 0;
};

class Esmm final : public Kernel {
 public:
  Esmm() {
    info_.name = "esmm";
    info_.summary = "dense-stored A and B, products over lists of k-indices nonzero in both";
    info_.source = "ESMM patterns; lists are ours";
    info_.purpose = "for a B with zeros";
    info_.precisions = {Precision::fp32};
    info_.inspects_b = true;
    info_.options = {kPath, kExtract};
  }
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo& device) const override {
    return esmm::supports_dense_a(problem, device);
  }
  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options& options, Device& device,
                                    StageTimer&) const override {
    return std::make_unique<PreparedPerShape<EsmmPlan>>(a, options, device);
  }

 private:
  KernelInfo info_;
};

}  // namespace

SPMMBENCH_REGISTER_KERNEL(Esmm);

}  // namespace spmmbench::esmm
