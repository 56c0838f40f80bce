// A with its zeros stored, multiplied by cuBLAS: the baseline that a sparse kernel has to beat.
//
// cuBLAS is column-major. A row-major matrix is the column-major transpose of itself, so row-major
// B and C are handled as C^T = B^T * A^T without moving anything:
//
//     row-major B, C:     gemm(B as N x K, A as K x M) -> C as N x M
//     column-major B, C:  gemm(A transposed back, B as K x N) -> C as M x N
//
// The row-major members of a batch are one strided batch, in which A is each one's.

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <mutex>

#include "common/dense_copy.hpp"
#include "common/device_handles.hpp"
#include "gpu/cublas.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/element.cuh"
#include "spmmbench/batch.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/scalars.hpp"

namespace spmmbench::cublas_dense {
namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;  // as cuBLAS recommends on Hopper

using CublasHandle = DeviceHandles<cublasHandle_t>::Shared;

CublasHandle& cublas_handle(const Device& device) {
  static DeviceHandles<cublasHandle_t> handles;
  return handles.of(device, [](cublasHandle_t& handle) {
    SPMMBENCH_CUBLAS(cublasCreate, &handle);
    // Partial sums of a 16-bit C stay fp32; by default cuBLAS may add them in 16 bits.
    SPMMBENCH_CUBLAS(cublasSetMathMode, handle,
                     static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH |
                                               CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));
  });
}

cublasComputeType_t compute_type(Precision precision) {
  switch (precision) {
#define SPMMBENCH_CASE(id, name, type, fraction, number, compute) \
  case Precision::id: return compute;
    SPMMBENCH_PRECISIONS(SPMMBENCH_CASE)
#undef SPMMBENCH_CASE
  }
  std::abort();
}

// Sizes and leading dimensions are int in cuBLAS.
constexpr const char* kTooLarge = "cuBLAS takes sizes and leading dimensions up to 2^31 - 1";

bool fits_int(std::int64_t size) { return size <= std::numeric_limits<int>::max(); }

int to_int(std::int64_t size) {
  if (!fits_int(size)) throw Error(kTooLarge);
  return static_cast<int>(size);
}

bool fits_int(const Problem& problem) {
  const std::int64_t m = problem.m(), k = problem.k(), n = problem.n;
  const ElementType type = storage_type(problem.precision);
  const std::int64_t lda = dense_shape(problem).ld;
  const std::int64_t ldb = make_b_view(k, n, problem.layout, type).ld;
  const std::int64_t ldc = make_dense_view(m, n, problem.layout, problem.c_type).ld;
  return fits_int(std::max({m, n, lda, ldb, ldc}));  // k is at most lda
}

// A with its zeros, the same for every shape.
struct DenseA {
  DenseA(const SparseOperand& operand, Device& device, StageTimer& stages)
      : view(dense_shape(operand)), precision(operand.precision) {
    memory = upload_dense(operand, view, device, stages);
    view.data = memory.data();
  }

  DenseView view;
  Precision precision;
  Buffer memory;
};

class CublasDensePlan final : public Plan, public ScalingPlan {
 public:
  CublasDensePlan(const DenseA& a, std::int64_t n, std::int64_t members, Device& device,
                  StageTimer& stages)
      : handle_(cublas_handle(device)),
        a_(a),
        members_(static_cast<int>(members)),
        issued_flops_(2.0 * static_cast<double>(a.view.rows) * static_cast<double>(a.view.cols) *
                      static_cast<double>(n * members)) {
    const auto timed = stages.scope("upload");
    workspace_ = device.allocate(kWorkspaceBytes);
  }

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    launch_scaled(b, c, {}, stream);
  }
  void launch_scaled(const DenseView& b, const DenseView& c, const Scalars& scalars,
                     Stream stream) override {
    const std::scoped_lock lock(handle_.mutex);
    SPMMBENCH_CUBLAS(cublasSetStream, handle_.handle, static_cast<cudaStream_t>(stream.handle));
    SPMMBENCH_CUBLAS(cublasSetWorkspace, handle_.handle, workspace_.data(), workspace_.bytes());
    const int m = to_int(c.rows / members_), n = to_int(c.cols);
    if (members_ > 1) multiply_batch(n, m, b, c, scalars);
    else if (b.layout == Layout::row_major) multiply(CUBLAS_OP_N, n, m, b, a_.view, c, scalars);
    else multiply(CUBLAS_OP_T, m, n, a_.view, b, c, scalars);
    SPMMBENCH_CUDA_LAUNCHED();
  }

  PlanReport report() const override {
    PlanReport report;
    report.device_bytes = a_.memory.bytes() + workspace_.bytes();
    report.issued_flops = issued_flops_;
    return report;
  }

 private:
  // The scalars, in the type that cuBLAS computes in.
  struct Factors {
    Factors(const Scalars& given, Precision precision)
        : fp64(precision == Precision::fp64),
          in64(given),
          alpha32(static_cast<float>(given.alpha)),
          beta32(static_cast<float>(given.beta)) {}
    const void* alpha() const { return fp64 ? static_cast<const void*>(&in64.alpha) : &alpha32; }
    const void* beta() const { return fp64 ? static_cast<const void*>(&in64.beta) : &beta32; }

    bool fp64;
    Scalars in64;
    float alpha32, beta32;
  };

  // Column-major: c (rows x cols) = alpha * op(left) * right + beta * c.
  void multiply(cublasOperation_t left_op, int rows, int cols, const DenseView& left,
                const DenseView& right, const DenseView& c, const Scalars& scalars) {
    const Factors factors(scalars, a_.precision);
    check_cublas(
        gemm_ex()(handle_.handle, left_op, CUBLAS_OP_N, rows, cols, to_int(a_.view.cols),
                  factors.alpha(), left.data, cuda_type(left.type), to_int(left.ld), right.data,
                  cuda_type(right.type), to_int(right.ld), factors.beta(), c.data,
                  cuda_type(c.type), to_int(c.ld), compute_type(a_.precision), CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
  }

  // As above, for row-major members: the right factor of each is A.
  void multiply_batch(int rows, int cols, const DenseView& b, const DenseView& c,
                      const Scalars& scalars) {
    const Factors factors(scalars, a_.precision);
    const DenseView& a = a_.view;
    check_cublas(gemm_batch_ex()(handle_.handle, CUBLAS_OP_N, CUBLAS_OP_N, rows, cols,
                                 to_int(a.cols), factors.alpha(), b.data, cuda_type(b.type),
                                 to_int(b.ld), b.rows / members_ * b.ld, a.data, cuda_type(a.type),
                                 to_int(a.ld), 0, factors.beta(), c.data, cuda_type(c.type),
                                 to_int(c.ld), c.rows / members_ * c.ld, members_,
                                 compute_type(a_.precision), CUBLAS_GEMM_DEFAULT),
                 "cublasGemmStridedBatchedEx");
  }

  CublasHandle& handle_;
  const DenseA& a_;
  int members_;
  Buffer workspace_;  // its own, since another plan of A may run at the same time
  double issued_flops_;
};

class CublasDensePrepared final : public Prepared, public BatchPrepared {
 public:
  CublasDensePrepared(const SparseOperand& a, Device& device, StageTimer& stages)
      : a_(a, device, stages), device_(device) {}

  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) override {
    return bind_batch(shape, 1, stages);
  }
  std::unique_ptr<Plan> bind_batch(const Shape& shape, std::int64_t members,
                                   StageTimer& stages) override {
    return std::make_unique<CublasDensePlan>(a_, shape.n, members, device_, stages);
  }

 private:
  DenseA a_;
  Device& device_;
};

class CublasDense final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo& device) const override {
    if (!fits_int(problem)) return Support::no(kTooLarge);
    if (!cublas_library().error().empty()) return Support::no(cublas_library().error());
    const ElementType type = storage_type(problem.precision);
    if (problem.c_type != ElementType::f32 && problem.c_type != type)
      return Support::no(fmt::format("cuBLAS does not write {} from {} inputs",
                                     to_string(problem.c_type), to_string(problem.precision)));
    Support support = supports_dense(problem, device);
    if (support.ok) support.device_bytes += kWorkspaceBytes;
    return support;
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options&, Device& device,
                                    StageTimer& stages) const override {
    (void)cublas_handle(device);  // before anything is timed
    return std::make_unique<CublasDensePrepared>(a, device, stages);
  }

 private:
  KernelInfo info_ = {
      .name = "cublas_dense",
      .summary = "cuBLAS on A with its zeros stored",
      .source = "cuBLAS",
      .precisions = {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16,
                     Precision::fp64},
      .c_types = {ElementType::f32, ElementType::f16, ElementType::bf16},
      .layouts = {Layout::row_major, Layout::col_major},
      .accumulation = Accumulation::fp32_tensor_core,
      .baseline = true,
      .flags = {kTakesScalars},
  };
};

SPMMBENCH_REGISTER_KERNEL(CublasDense);

}  // namespace
}  // namespace spmmbench::cublas_dense
