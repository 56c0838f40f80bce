// esmm_skip: C = A * B for dense-stored A and B, zeros skipped by the source's scheme (ESMM
// research code, kernel 29), without its limits on M, N and K. esmm_a and esmm_b are its ablations
// with one operand's patterns. The products of a skipped k are not formed, so that an Inf or NaN
// which only meets zeros of the other operand leaves no NaN in C.

#include "esmm/prepared.cuh"
#include "esmm/skip.cuh"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

class EsmmSkipPlan final : public Plan {
 public:
  EsmmSkipPlan(const Problem& problem, Device& device, StageTimer& stages, esmm::SkipRules rules)
      : prepared_(problem, device, stages), rules_(rules), nnz_(problem.nnz()) {
    prepared_.extract(false, stages);
    prepared_.drop_lines();
  }

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    const esmm::Operands op = prepared_.operands(b, c);
    esmm::skip_tiles<<<esmm::SkipTile::grid(op), esmm::SkipTile::kThreads, 0,
                       static_cast<cudaStream_t>(stream.handle)>>>(op, prepared_.dense(),
                                                                   prepared_.sizes().lda, rules_);
    SPMMBENCH_CUDA_LAUNCHED();
  }

  PlanReport report() const override {
    PlanReport r;
    r.device_bytes = prepared_.device_bytes();
    r.format = prepared_.format(nnz_);
    r.params = {{"block_skip", rules_.block ? "1" : "0"}};
    r.metrics = prepared_.metrics();
    return r;
  }

 private:
  esmm::Prepared prepared_;
  esmm::SkipRules rules_;
  std::int64_t nnz_;
};

class EsmmSkip final : public Kernel {
 public:
  EsmmSkip(std::string name, std::string summary, bool use_a, bool use_b)
      : use_a_(use_a), use_b_(use_b) {
    info_.name = std::move(name);
    info_.summary = std::move(summary);
    info_.source = "ESMM";
    info_.precisions = {Precision::fp32};
    info_.options = {{"block_skip", "1", "skip the loads of a 64 x 128 x 8 tile no warp needs"}};
  }
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo& device) const override {
    return esmm::supports_dense_a(problem, device);
  }
  std::unique_ptr<Plan> prepare(const Problem& problem, Device& device,
                                StageTimer& stages) const override {
    const bool block = problem.options.get_bool("block_skip", true);
    return std::make_unique<EsmmSkipPlan>(problem, device, stages,
                                          esmm::SkipRules{use_a_, use_b_, block});
  }

 private:
  KernelInfo info_;
  bool use_a_, use_b_;
};

}  // namespace

SPMMBENCH_REGISTER_KERNEL(
    EsmmSkip, "esmm_skip",
    "dense-stored A and B, zero blocks skipped by tests along K (the source's scheme)", true, true);
SPMMBENCH_REGISTER_KERNEL(EsmmSkip, "esmm_a", "esmm_skip with A's patterns only", true, false);
SPMMBENCH_REGISTER_KERNEL(EsmmSkip, "esmm_b", "esmm_skip with B's patterns only", false, true);

}  // namespace spmmbench
