// The part of the cuSPARSE baselines that does not depend on the format of A.

#include <fmt/format.h>

#include <map>

#include "common/cusparse.hpp"
#include "gpu/cuda_check.hpp"

namespace spmmbench {
namespace {

class CusparsePlan final : public Plan {
 public:
  CusparsePlan(const Problem& problem, Device& device, StageTimer& stages, SparseOnDevice a,
               cusparseSpMMAlg_t algorithm, bool preprocess)
      : a_(std::move(a)), algorithm_(algorithm), handle_(cusparse_handle(device)) {
    const auto timed = stages.scope("tune");
    SPMMBENCH_CUSPARSE(
        cusparseSetStream(handle_, static_cast<cudaStream_t>(device.stream().handle)));
    b_ = describe_dense(problem.b);
    // C does not exist yet. Nothing is written before launch, which sets the address.
    DenseView c = make_dense_view(problem.m(), problem.n, problem.layout, problem.c_type);
    c.data = problem.b.data;
    c_ = describe_dense(c);
    std::size_t bytes = 0;
    SPMMBENCH_CUSPARSE(cusparseSpMM_bufferSize(handle_, kAsIs, kAsIs, &kOne, a_.matrix.get(),
                                               b_.get(), &kZero, c_.get(), CUDA_R_32F, algorithm_,
                                               &bytes));
    workspace_ = device.allocate(bytes);
    if (preprocess)
      SPMMBENCH_CUSPARSE(cusparseSpMM_preprocess(handle_, kAsIs, kAsIs, &kOne, a_.matrix.get(),
                                                 b_.get(), &kZero, c_.get(), CUDA_R_32F, algorithm_,
                                                 workspace_.data()));
    device.synchronize();
  }

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    SPMMBENCH_CUSPARSE(cusparseSetStream(handle_, static_cast<cudaStream_t>(stream.handle)));
    SPMMBENCH_CUSPARSE(cusparseDnMatSetValues(b_.get(), b.data));
    SPMMBENCH_CUSPARSE(cusparseDnMatSetValues(c_.get(), c.data));
    SPMMBENCH_CUSPARSE(cusparseSpMM(handle_, kAsIs, kAsIs, &kOne, a_.matrix.get(), b_.get(), &kZero,
                                    c_.get(), CUDA_R_32F, algorithm_, workspace_.data()));
    SPMMBENCH_CUDA_LAUNCHED();
  }

  PlanReport report() const override {
    PlanReport report = a_.report;
    report.device_bytes = workspace_.bytes();
    for (const Buffer& buffer : a_.memory) report.device_bytes += buffer.bytes();
    report.metrics["workspace_bytes"] = static_cast<double>(workspace_.bytes());
    return report;
  }

 private:
  static constexpr cusparseOperation_t kAsIs = CUSPARSE_OPERATION_NON_TRANSPOSE;
  static constexpr float kOne = 1;
  static constexpr float kZero = 0;

  SparseOnDevice a_;
  cusparseSpMMAlg_t algorithm_;
  cusparseHandle_t handle_;
  DenseDescriptor b_, c_;
  Buffer workspace_;
};

}  // namespace

void throw_cusparse_error(cusparseStatus_t status, const char* call) {
  const cudaError_t cuda = cudaGetLastError();
  throw DeviceError(fmt::format("cuSPARSE: {}: {}", call, cusparseGetErrorString(status)),
                    is_sticky(cuda));
}

cusparseHandle_t cusparse_handle(const Device& device) {
  static std::map<int, cusparseHandle_t> handles;
  cusparseHandle_t& handle = handles[device.info().index];
  if (handle == nullptr) SPMMBENCH_CUSPARSE(cusparseCreate(&handle));
  return handle;
}

cusparseOrder_t cusparse_order(Layout layout) {
  return layout == Layout::row_major ? CUSPARSE_ORDER_ROW : CUSPARSE_ORDER_COL;
}

DenseDescriptor describe_dense(const DenseView& view) {
  cusparseDnMatDescr_t matrix = nullptr;
  SPMMBENCH_CUSPARSE(cusparseCreateDnMat(&matrix, view.rows, view.cols, view.ld, view.data,
                                         cuda_type(view.type), cusparse_order(view.layout)));
  return DenseDescriptor(matrix);
}

std::unique_ptr<Plan> make_cusparse_plan(const Problem& problem, Device& device, StageTimer& stages,
                                         SparseOnDevice a, cusparseSpMMAlg_t algorithm,
                                         bool preprocess) {
  return std::make_unique<CusparsePlan>(problem, device, stages, std::move(a), algorithm,
                                        preprocess);
}

std::string unsupported_types(Precision precision, ElementType c_type) {
  if (c_type == ElementType::f32 || c_type == storage_type(precision)) return {};
  return fmt::format("cuSPARSE does not write {} from {} inputs", to_string(c_type),
                     to_string(precision));
}

}  // namespace spmmbench
