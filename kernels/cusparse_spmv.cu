// cuSPARSE's product of a sparse matrix and a vector: baselines of N = 1.
//
// cusparse_spmv is what a plain cusparseSpMV call gives, without preprocessing. The others name
// their algorithm and call cusparseSpMV_preprocess, whose time is the stage "tune". cuSPARSE's
// vectors are contiguous, as one column of a column-major matrix is. What cusparse_csr.cu says of
// tf32 and of a 16-bit C holds here as well.

#include <fmt/format.h>

#include "common/cusparse.hpp"
#include "gpu/cuda_check.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

struct DestroyVector {
  void operator()(cusparseDnVecDescr_t vector) const noexcept {
    (void)cusparseDestroyDnVec(vector);
  }
};
using VectorDescriptor =
    std::unique_ptr<std::remove_pointer_t<cusparseDnVecDescr_t>, DestroyVector>;

VectorDescriptor describe_vector(std::int64_t size, void* data, ElementType type) {
  cusparseDnVecDescr_t vector = nullptr;
  SPMMBENCH_CUSPARSE(cusparseCreateDnVec(&vector, size, data, cuda_type(type)));
  return VectorDescriptor(vector);
}

class SpmvPlan final : public Plan {
 public:
  SpmvPlan(const SparseOperand& operand, const Shape& shape, const SparseOnDevice& a,
           cusparseSpMVAlg_t algorithm, bool preprocess, Device& device, StageTimer& stages)
      : a_(a), algorithm_(algorithm), handle_(cusparse_handle(device)), matrix_(a.describe()) {
    const auto timed = stages.scope("tune");
    SPMMBENCH_CUSPARSE(
        cusparseSetStream(handle_, static_cast<cudaStream_t>(device.stream().handle)));
    // cuSPARSE wants addresses, which launch replaces before anything is read or written.
    placeholder_ = device.allocate(kPlaceholderBytes);
    b_ = describe_vector(operand.k(), placeholder_.data(), storage_type(operand.precision));
    c_ = describe_vector(operand.m(), placeholder_.data(), shape.c_type);
    std::size_t bytes = 0;
    SPMMBENCH_CUSPARSE(cusparseSpMV_bufferSize(handle_, kAsIs, &kOne, matrix_.get(), b_.get(),
                                               &kZero, c_.get(), CUDA_R_32F, algorithm_, &bytes));
    workspace_ = device.allocate(bytes);
    if (preprocess)
      SPMMBENCH_CUSPARSE(cusparseSpMV_preprocess(handle_, kAsIs, &kOne, matrix_.get(), b_.get(),
                                                 &kZero, c_.get(), CUDA_R_32F, algorithm_,
                                                 workspace_.data()));
    device.synchronize();
  }

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    SPMMBENCH_CUSPARSE(cusparseSetStream(handle_, static_cast<cudaStream_t>(stream.handle)));
    SPMMBENCH_CUSPARSE(cusparseDnVecSetValues(b_.get(), b.data));
    SPMMBENCH_CUSPARSE(cusparseDnVecSetValues(c_.get(), c.data));
    SPMMBENCH_CUSPARSE(cusparseSpMV(handle_, kAsIs, &kOne, matrix_.get(), b_.get(), &kZero,
                                    c_.get(), CUDA_R_32F, algorithm_, workspace_.data()));
    SPMMBENCH_CUDA_LAUNCHED();
  }

  PlanReport report() const override {
    PlanReport report = a_.report;
    report.device_bytes = workspace_.bytes() + placeholder_.bytes();
    for (const Buffer& buffer : a_.memory) report.device_bytes += buffer.bytes();
    report.metrics["workspace_bytes"] = static_cast<double>(workspace_.bytes());
    return report;
  }

 private:
  static constexpr cusparseOperation_t kAsIs = CUSPARSE_OPERATION_NON_TRANSPOSE;
  static constexpr float kOne = 1;
  static constexpr float kZero = 0;
  static constexpr std::size_t kPlaceholderBytes = 256;

  const SparseOnDevice& a_;
  cusparseSpMVAlg_t algorithm_;
  cusparseHandle_t handle_;
  SparseDescriptor matrix_;
  VectorDescriptor b_, c_;
  Buffer workspace_, placeholder_;
};

class SpmvPrepared final : public Prepared {
 public:
  SpmvPrepared(const SparseOperand& a, cusparseSpMVAlg_t algorithm, bool preprocess, Device& device,
               StageTimer& stages)
      : a_(a), algorithm_(algorithm), preprocess_(preprocess), device_(device) {
    (void)cusparse_handle(device);
    const auto timed = stages.scope("upload");
    matrix_ = upload_csr(a, device);
    device.synchronize();
  }

  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) override {
    return std::make_unique<SpmvPlan>(a_, shape, matrix_, algorithm_, preprocess_, device_, stages);
  }

 private:
  SparseOperand a_;
  cusparseSpMVAlg_t algorithm_;
  bool preprocess_;
  Device& device_;
  SparseOnDevice matrix_;
};

class CusparseSpmv final : public Kernel {
 public:
  CusparseSpmv(const char* name, const char* summary, cusparseSpMVAlg_t algorithm, bool preprocess)
      : algorithm_(algorithm), preprocess_(preprocess) {
    info_.name = name;
    info_.summary = summary;
    info_.source = "cuSPARSE";
    info_.precisions = {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16};
    info_.layouts = {Layout::col_major, Layout::row_major};
    info_.accumulation = Accumulation::fp32_fma;
    info_.baseline = true;
  }

  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo&) const override {
    if (problem.n != 1) return Support::no("N = 1 only");
    if (problem.layout == Layout::row_major) return Support::no("its vectors are contiguous");
    return Support::yes(csr_bytes(problem));
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options&, Device& device,
                                    StageTimer& stages) const override {
    return std::make_unique<SpmvPrepared>(a, algorithm_, preprocess_, device, stages);
  }

 private:
  KernelInfo info_;
  cusparseSpMVAlg_t algorithm_;
  bool preprocess_;
};

SPMMBENCH_REGISTER_KERNEL(CusparseSpmv, "cusparse_spmv", "CSR as a plain cusparseSpMV call runs it",
                          CUSPARSE_SPMV_ALG_DEFAULT, false);
SPMMBENCH_REGISTER_KERNEL(CusparseSpmv, "cusparse_spmv_alg1", "SpMV CSR_ALG1 with preprocessing",
                          CUSPARSE_SPMV_CSR_ALG1, true);
SPMMBENCH_REGISTER_KERNEL(CusparseSpmv, "cusparse_spmv_alg2",
                          "SpMV CSR_ALG2 with preprocessing (bit-reproducible)",
                          CUSPARSE_SPMV_CSR_ALG2, true);

}  // namespace
}  // namespace spmmbench
