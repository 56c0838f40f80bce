// csr_naive: the smallest complete kernel. Copy this file to begin one of your own; read
// csr_row_split.cu next, which is the same product made fast.
//
// One thread computes one element of C: thread (i, j) walks the nonzeros of row i of A and adds
// value * B[column][j]. Neighbouring threads have neighbouring j, so that they read neighbouring
// elements of a row of B.

#include <cuda_runtime.h>

#include "gpu/cuda_check.hpp"
#include "gpu/upload_values.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::csr_naive {
namespace {

template <class T>  // fp32 or fp64
__global__ void csr_naive_kernel(const std::int64_t* row_ptr, const std::int32_t* col_idx,
                                 const T* values, std::int64_t rows, DenseView b, DenseView c) {
  const std::int64_t element = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t i = element / c.cols, j = element % c.cols;
  if (i >= rows) return;
  T sum = 0;
  for (std::int64_t e = row_ptr[i]; e < row_ptr[i + 1]; ++e)
    sum += values[e] * static_cast<const T*>(b.data)[col_idx[e] * b.ld + j];
  static_cast<T*>(c.data)[i * c.ld + j] = sum;
}

// A on the device. `prepare` makes it once; every plan bound to it uses it.
struct Matrix {
  std::int64_t rows;
  Buffer row_ptr, col_idx, values;
};

// Bound to one N. Only launch is timed; it allocates nothing and writes all of C.
class CsrNaivePlan final : public Plan {
 public:
  explicit CsrNaivePlan(const Matrix& a) : a_(a) {}
  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    if (b.type == ElementType::f64) launch_as<double>(b, c, stream);
    else launch_as<float>(b, c, stream);
  }
  PlanReport report() const override {
    PlanReport report;
    report.device_bytes = a_.row_ptr.bytes() + a_.col_idx.bytes() + a_.values.bytes();
    return report;
  }

 private:
  template <class T>
  void launch_as(const DenseView& b, const DenseView& c, Stream stream) {
    constexpr int kThreads = 256;
    const auto blocks = static_cast<unsigned>((a_.rows * c.cols + kThreads - 1) / kThreads);
    csr_naive_kernel<T><<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream.handle)>>>(
        a_.row_ptr.as<std::int64_t>(), a_.col_idx.as<std::int32_t>(), a_.values.as<T>(), a_.rows, b,
        c);
    SPMMBENCH_CUDA_LAUNCHED();
  }

  const Matrix& a_;
};

class CsrNaivePrepared final : public Prepared {
 public:
  CsrNaivePrepared(const SparseOperand& a, Device& device)
      : a_{a.m(), device.upload(a.a->row_ptr), device.upload(a.a->col_idx),
           upload_values(device, *a.a, storage_type(a.precision))} {}
  std::unique_ptr<Plan> bind(const Shape&, StageTimer&) override {
    return std::make_unique<CsrNaivePlan>(a_);
  }

 private:
  Matrix a_;
};

class CsrNaive final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  // The user is shown the reason of a refusal. The bytes are the device memory of the plan.
  Support supports(const Problem& problem, const DeviceInfo&) const override {
    constexpr std::int64_t kMostElements = std::int64_t{1} << 38;  // 2^30 CTAs of 256 threads
    if (problem.m() * problem.n > kMostElements)
      return Support::no("C has more than 2^38 elements");
    const std::size_t entry_bytes = 4 + bytes_of(storage_type(problem.precision));
    return Support::yes((problem.m() + 1) * 8 + problem.nnz() * entry_bytes);
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options&, Device& device,
                                    StageTimer& stages) const override {
    const auto timed = stages.scope("upload");  // until the end of the block
    auto prepared = std::make_unique<CsrNaivePrepared>(a, device);
    device.synchronize();
    return prepared;
  }

 private:
  KernelInfo info_ = {
      .name = "csr_naive",
      .summary = "CSR, one thread per element of C: the model to copy",
      .source = "spmmbench",
      .purpose = "to copy",
      .precisions = {Precision::fp32, Precision::tf32, Precision::fp64},
  };
};

SPMMBENCH_REGISTER_KERNEL(CsrNaive);  // listed, verified, timed, reported and tested from here on

}  // namespace
}  // namespace spmmbench::csr_naive
