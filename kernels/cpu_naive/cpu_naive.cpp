// cpu_naive: the smallest complete kernel for the CPU. Copy this file to begin one of your own;
// read cpu_csr.cpp next, which is the same product made fast.
//
// A thread computes whole rows of C: it walks the nonzeros of row i of A and adds value * row
// B[column] to row i.

#include <algorithm>

#include "spmmbench/registry.hpp"

namespace spmmbench::cpu_naive {
namespace {

// Bound to one N. Only launch is timed; it allocates nothing and writes all of C.
class CpuNaivePlan final : public Plan {
 public:
  explicit CpuNaivePlan(const CsrMatrix& a) : a_(a) {}
  void launch(const DenseView& b, const DenseView& c, Stream) override {
#pragma omp parallel for schedule(dynamic, 64)
    for (std::int64_t i = 0; i < a_.rows; ++i) {
      float* const sums = static_cast<float*>(c.data) + i * c.ld;
      std::fill_n(sums, c.cols, 0.0F);
      for (std::int64_t e = a_.row_ptr[i]; e < a_.row_ptr[i + 1]; ++e) {
        const float* const row = static_cast<const float*>(b.data) + a_.col_idx[e] * b.ld;
        for (std::int64_t j = 0; j < c.cols; ++j) sums[j] += a_.values[e] * row[j];
      }
    }
  }
  PlanReport report() const override { return {}; }  // it holds no memory of its own

 private:
  const CsrMatrix& a_;
};

// What `prepare` makes of A once, for every plan that is bound to it: here nothing.
class CpuNaivePrepared final : public Prepared {
 public:
  explicit CpuNaivePrepared(const CsrMatrix& a) : a_(a) {}
  std::unique_ptr<Plan> bind(const Shape&, StageTimer&) override {
    return std::make_unique<CpuNaivePlan>(a_);
  }

 private:
  const CsrMatrix& a_;  // outlives this
};

class CpuNaive final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  // The bytes are the memory of the plan. A refusal is Support::no with a reason for the user.
  Support supports(const Problem&, const DeviceInfo&) const override { return Support::yes(0); }

  // What takes time here goes into a stage: `const auto timed = stages.scope("build");`.
  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options&, Device&,
                                    StageTimer&) const override {
    return std::make_unique<CpuNaivePrepared>(*a.a);
  }

 private:
  KernelInfo info_ = {
      .name = "cpu_naive",
      .summary = "CSR on the CPU, one thread per row of C: the model to copy",
      .source = "spmmbench",
      .purpose = "to copy",
      .device = DeviceKind::host,
      .precisions = {Precision::fp32, Precision::tf32},
  };
};

SPMMBENCH_REGISTER_KERNEL(CpuNaive);  // listed, verified, timed, reported and tested from here on

}  // namespace
}  // namespace spmmbench::cpu_naive
