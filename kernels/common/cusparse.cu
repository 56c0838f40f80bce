// What the cuSPARSE baselines share.

#include <fmt/format.h>

#include <limits>
#include <map>

#include "common/cusparse.hpp"
#include "common/upload_values.hpp"
#include "gpu/cuda_check.hpp"

namespace spmmbench {
namespace {

class CusparsePlan final : public Plan {
 public:
  CusparsePlan(const SparseOperand& operand, const Shape& shape, const SparseOnDevice& a,
               cusparseSpMMAlg_t algorithm, bool preprocess, Device& device, StageTimer& stages)
      : a_(a), algorithm_(algorithm), handle_(cusparse_handle(device)), n_(shape.n) {
    const auto timed = stages.scope("tune");
    SPMMBENCH_CUSPARSE(
        cusparseSetStream(handle_, static_cast<cudaStream_t>(device.stream().handle)));
    matrix_ = a.describe();
    // B and C are not there yet. cuSPARSE wants addresses, which launch replaces before it reads or
    // writes anything.
    DenseView b = make_dense_view(operand.k(), n_, shape.layout, storage_type(operand.precision));
    DenseView c = make_dense_view(operand.m(), n_, shape.layout, shape.c_type);
    placeholder_ = device.allocate(kPlaceholderBytes);
    b.data = c.data = placeholder_.data();
    b_ = describe_dense(b);
    c_ = describe_dense(c);
    std::size_t bytes = 0;
    SPMMBENCH_CUSPARSE(cusparseSpMM_bufferSize(handle_, kAsIs, kAsIs, &kOne, matrix_.get(),
                                               b_.get(), &kZero, c_.get(), CUDA_R_32F, algorithm_,
                                               &bytes));
    workspace_ = device.allocate(bytes);
    if (preprocess)
      SPMMBENCH_CUSPARSE(cusparseSpMM_preprocess(handle_, kAsIs, kAsIs, &kOne, matrix_.get(),
                                                 b_.get(), &kZero, c_.get(), CUDA_R_32F, algorithm_,
                                                 workspace_.data()));
    device.synchronize();
  }

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    SPMMBENCH_CUSPARSE(cusparseSetStream(handle_, static_cast<cudaStream_t>(stream.handle)));
    SPMMBENCH_CUSPARSE(cusparseDnMatSetValues(b_.get(), b.data));
    SPMMBENCH_CUSPARSE(cusparseDnMatSetValues(c_.get(), c.data));
    SPMMBENCH_CUSPARSE(cusparseSpMM(handle_, kAsIs, kAsIs, &kOne, matrix_.get(), b_.get(), &kZero,
                                    c_.get(), CUDA_R_32F, algorithm_, workspace_.data()));
    SPMMBENCH_CUDA_LAUNCHED();
  }

  PlanReport report() const override {
    PlanReport report = a_.report;
    report.device_bytes = workspace_.bytes() + placeholder_.bytes();
    for (const Buffer& buffer : a_.memory) report.device_bytes += buffer.bytes();
    report.issued_flops = 2.0 * static_cast<double>(a_.stored) * static_cast<double>(n_);
    report.metrics["workspace_bytes"] = static_cast<double>(workspace_.bytes());
    return report;
  }

 private:
  static constexpr cusparseOperation_t kAsIs = CUSPARSE_OPERATION_NON_TRANSPOSE;
  static constexpr float kOne = 1;
  static constexpr float kZero = 0;
  static constexpr std::size_t kPlaceholderBytes = 256;

  const SparseOnDevice& a_;
  cusparseSpMMAlg_t algorithm_;
  cusparseHandle_t handle_;
  std::int64_t n_;
  SparseDescriptor matrix_;
  DenseDescriptor b_, c_;
  Buffer workspace_, placeholder_;
};

class CusparsePrepared final : public Prepared {
 public:
  CusparsePrepared(const SparseOperand& a, Device& device, SparseOnDevice matrix,
                   cusparseSpMMAlg_t algorithm, bool preprocess)
      : a_(a),
        device_(device),
        matrix_(std::move(matrix)),
        algorithm_(algorithm),
        preprocess_(preprocess) {}

  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) override {
    return std::make_unique<CusparsePlan>(a_, shape, matrix_, algorithm_, preprocess_, device_,
                                          stages);
  }

 private:
  SparseOperand a_;
  Device& device_;
  SparseOnDevice matrix_;
  cusparseSpMMAlg_t algorithm_;
  bool preprocess_;
};

bool fits_32_bits(const SparseOperand& a) {
  return a.nnz() < std::numeric_limits<std::int32_t>::max();
}

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

SparseOnDevice upload_csr(const SparseOperand& operand, Device& device) {
  const CsrMatrix& a = *operand.a;
  const ElementType type = storage_type(operand.precision);
  const bool narrow = fits_32_bits(operand);
  SparseOnDevice out;
  if (narrow) {
    out.memory.push_back(
        device.upload(std::vector<std::int32_t>(a.row_ptr.begin(), a.row_ptr.end())));
    out.memory.push_back(device.upload(a.col_idx));
  } else {
    out.memory.push_back(device.upload(a.row_ptr));
    out.memory.push_back(
        device.upload(std::vector<std::int64_t>(a.col_idx.begin(), a.col_idx.end())));
  }
  out.memory.push_back(upload_values(device, a.values, type));
  out.stored = a.nnz();
  const cusparseIndexType_t index = narrow ? CUSPARSE_INDEX_32I : CUSPARSE_INDEX_64I;
  out.describe = [&a, index, type, row_ptr = out.memory[0].data(), col_idx = out.memory[1].data(),
                  values = out.memory[2].data()] {
    cusparseSpMatDescr_t matrix = nullptr;
    SPMMBENCH_CUSPARSE(cusparseCreateCsr(&matrix, a.rows, a.cols, a.nnz(), row_ptr, col_idx, values,
                                         index, index, CUSPARSE_INDEX_BASE_ZERO, cuda_type(type)));
    return SparseDescriptor(matrix);
  };
  return out;
}

std::size_t csr_bytes(const SparseOperand& a) {
  const std::int64_t index_bytes = fits_32_bits(a) ? 4 : 8;
  const auto value_bytes = static_cast<std::int64_t>(bytes_of(storage_type(a.precision)));
  return static_cast<std::size_t>((a.m() + 1) * index_bytes +
                                  a.nnz() * (index_bytes + value_bytes));
}

std::unique_ptr<Prepared> make_cusparse_prepared(const SparseOperand& a, Device& device,
                                                 SparseOnDevice matrix, cusparseSpMMAlg_t algorithm,
                                                 bool preprocess) {
  return std::make_unique<CusparsePrepared>(a, device, std::move(matrix), algorithm, preprocess);
}

std::string unsupported_types(Precision precision, ElementType c_type) {
  if (c_type == ElementType::f32 || c_type == storage_type(precision)) return {};
  return fmt::format("cuSPARSE does not write {} from {} inputs", to_string(c_type),
                     to_string(precision));
}

}  // namespace spmmbench
