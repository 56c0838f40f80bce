// esmm_skip: C = A * B for dense-stored A and B, zeros skipped by the source's scheme (ESMM
// research code, kernel 29), without its limits on M, N and K. esmm_a and esmm_b are its ablations
// with one operand's patterns. The products of a skipped k are not formed, so that an Inf or NaN
// which only meets zeros of the other operand leaves no NaN in C.

#include "esmm/prepared.cuh"
#include "esmm_skip/device.cuh"
#include "spmmbench/registry.hpp"

namespace spmmbench::esmm_skip {
namespace {

class EsmmSkipPlan final : public Plan {
 public:
  EsmmSkipPlan(const Problem& problem, Device& device, StageTimer& stages, esmm::SkipRules rules)
      : operands_(problem, device, stages), rules_(rules), nnz_(problem.nnz()) {}

  void inspect_b(const DenseView& b, StageTimer& stages) override {
    operands_.read_patterns(b, stages);
    operands_.extract(false, stages);
    operands_.drop_lines();
  }

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    const esmm::Operands op = operands_.operands(b, c);
    esmm::skip_tiles<<<esmm::SkipTile::grid(op), esmm::SkipTile::kThreads, 0,
                       static_cast<cudaStream_t>(stream.handle)>>>(
        op, operands_.dense(), operands_.sizes().dense.ld, rules_);
    SPMMBENCH_CUDA_LAUNCHED();
  }

  PlanReport report() const override {
    PlanReport r;
    r.device_bytes = operands_.device_bytes();
    r.format = operands_.format(nnz_);
    r.params = {{"block_skip", rules_.block ? "1" : "0"}};
    r.metrics = operands_.metrics();
    return r;
  }

 private:
  esmm::PatternedOperands operands_;
  esmm::SkipRules rules_;
  std::int64_t nnz_;
};

const auto kBlockSkip =
    flag_option("block_skip", true, "skip the loads of a 64 x 128 x 8 tile no warp needs");

class EsmmSkipPrepared final : public Prepared {
 public:
  EsmmSkipPrepared(const SparseOperand& a, esmm::SkipRules rules, Device& device)
      : a_(a), rules_(rules), device_(device) {}

  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) override {
    return std::make_unique<EsmmSkipPlan>(Problem{a_, shape, {}}, device_, stages, rules_);
  }

 private:
  SparseOperand a_;
  esmm::SkipRules rules_;
  Device& device_;
};

class EsmmSkip final : public Kernel {
 public:
  EsmmSkip(std::string name, std::string summary, bool use_a, bool use_b)
      : use_a_(use_a), use_b_(use_b) {
    info_.name = std::move(name);
    info_.summary = std::move(summary);
    info_.source = "ESMM";
    info_.purpose = "reproduces ESMM";
    info_.precisions = {Precision::fp32};
    info_.inspects_b = true;
    info_.options = {kBlockSkip};
  }
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo& device) const override {
    return esmm::supports_dense_a(problem, device);
  }
  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options& options, Device& device,
                                    StageTimer&) const override {
    const esmm::SkipRules rules{use_a_, use_b_, kBlockSkip(options)};
    return std::make_unique<EsmmSkipPrepared>(a, rules, device);
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

}  // namespace spmmbench::esmm_skip
