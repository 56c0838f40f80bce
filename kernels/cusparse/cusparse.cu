// What the cuSPARSE baselines share.

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "cusparse/cusparse.hpp"
#include "gpu/cuda_check.hpp"
#include "spmmbench/batch.hpp"
#include "spmmbench/scalars.hpp"

namespace spmmbench {
namespace {

constexpr cusparseOperation_t kAsIs = CUSPARSE_OPERATION_NON_TRANSPOSE;

// Scalars of the type that cuSPARSE computes in.
class TypedScalars {
 public:
  TypedScalars(cudaDataType type, const Scalars& scalars)
      : in_fp64_(type == CUDA_R_64F),
        scalars_(scalars),
        alpha_(static_cast<float>(scalars.alpha)),
        beta_(static_cast<float>(scalars.beta)) {}

  const void* alpha() const {
    return in_fp64_ ? static_cast<const void*>(&scalars_.alpha) : &alpha_;
  }
  const void* beta() const { return in_fp64_ ? static_cast<const void*>(&scalars_.beta) : &beta_; }

 private:
  bool in_fp64_;
  Scalars scalars_;
  float alpha_, beta_;
};

cudaDataType computed_in(Precision precision) {
  return precision == Precision::fp64 ? CUDA_R_64F : CUDA_R_32F;
}

// cusparseSpMM and cusparseSpMV as one plan calls them.
struct MatrixProduct {
  using Algorithm = cusparseSpMMAlg_t;
  cusparseHandle_t handle;
  Algorithm algorithm;
  cudaDataType type;
  SparseDescriptor a;
  DenseDescriptor b, c;
  cusparseOperation_t of_a = kAsIs;

  static DenseDescriptor describe(const DenseView& all, std::int64_t members) {
    const DenseView one = member_of(all, members, 0);
    DenseDescriptor matrix = describe_dense(one);
    if (members > 1)
      SPMMBENCH_CUSPARSE(cusparseDnMatSetStridedBatch, matrix.get(), static_cast<int>(members),
                         one.rows * one.ld);
    return matrix;
  }
  // Members of a batch have the same A: the next one's lies 0 elements behind.
  void share_a(std::int64_t members) const {
    cusparseFormat_t format{};
    SPMMBENCH_CUSPARSE(cusparseSpMatGetFormat, a.get(), &format);
    const int count = static_cast<int>(members);
    if (format == CUSPARSE_FORMAT_COO)
      SPMMBENCH_CUSPARSE(cusparseCooSetStridedBatch, a.get(), count, 0);
    else SPMMBENCH_CUSPARSE(cusparseCsrSetStridedBatch, a.get(), count, 0, 0);
  }
  void set(void* b_data, void* c_data) const {
    SPMMBENCH_CUSPARSE(cusparseDnMatSetValues, b.get(), b_data);
    SPMMBENCH_CUSPARSE(cusparseDnMatSetValues, c.get(), c_data);
  }
  std::size_t workspace_bytes() const {
    std::size_t bytes = 0;
    const TypedScalars scalars(type, {});
    SPMMBENCH_CUSPARSE(cusparseSpMM_bufferSize, handle, of_a, kAsIs, scalars.alpha(), a.get(),
                       b.get(), scalars.beta(), c.get(), type, algorithm, &bytes);
    return bytes;
  }
  void preprocess(void* workspace) const {
    const TypedScalars scalars(type, {});
    SPMMBENCH_CUSPARSE(cusparseSpMM_preprocess, handle, of_a, kAsIs, scalars.alpha(), a.get(),
                       b.get(), scalars.beta(), c.get(), type, algorithm, workspace);
  }
  void multiply(const Scalars& given, void* workspace) const {
    const TypedScalars scalars(type, given);
    SPMMBENCH_CUSPARSE(cusparseSpMM, handle, of_a, kAsIs, scalars.alpha(), a.get(), b.get(),
                       scalars.beta(), c.get(), type, algorithm, workspace);
  }
};

struct DestroyVector {
  void operator()(cusparseDnVecDescr_t vector) const noexcept {
    (void)SPMMBENCH_FUNCTION(cusparse_library(), cusparseDestroyDnVec)(vector);
  }
};
using VectorDescriptor =
    std::unique_ptr<std::remove_pointer_t<cusparseDnVecDescr_t>, DestroyVector>;

struct VectorProduct {
  using Algorithm = cusparseSpMVAlg_t;
  cusparseHandle_t handle;
  Algorithm algorithm;
  cudaDataType type;
  SparseDescriptor a;
  VectorDescriptor b, c;

  static VectorDescriptor describe(const DenseView& view, std::int64_t /*members: one*/) {
    cusparseDnVecDescr_t vector = nullptr;
    SPMMBENCH_CUSPARSE(cusparseCreateDnVec, &vector, view.rows, view.data, cuda_type(view.type));
    return VectorDescriptor(vector);
  }
  void set(void* b_data, void* c_data) const {
    SPMMBENCH_CUSPARSE(cusparseDnVecSetValues, b.get(), b_data);
    SPMMBENCH_CUSPARSE(cusparseDnVecSetValues, c.get(), c_data);
  }
  std::size_t workspace_bytes() const {
    std::size_t bytes = 0;
    const TypedScalars scalars(type, {});
    SPMMBENCH_CUSPARSE(cusparseSpMV_bufferSize, handle, kAsIs, scalars.alpha(), a.get(), b.get(),
                       scalars.beta(), c.get(), type, algorithm, &bytes);
    return bytes;
  }
  void preprocess(void* workspace) const {
    const TypedScalars scalars(type, {});
    SPMMBENCH_CUSPARSE(cusparseSpMV_preprocess, handle, kAsIs, scalars.alpha(), a.get(), b.get(),
                       scalars.beta(), c.get(), type, algorithm, workspace);
  }
  void multiply(const Scalars& given, void* workspace) const {
    const TypedScalars scalars(type, given);
    SPMMBENCH_CUSPARSE(cusparseSpMV, handle, kAsIs, scalars.alpha(), a.get(), b.get(),
                       scalars.beta(), c.get(), type, algorithm, workspace);
  }
};

template <class Product>
class CusparsePlan final : public Plan, public ScalingPlan {
 public:
  CusparsePlan(const SparseOperand& operand, const Shape& shape, std::int64_t members,
               const SparseOnDevice& a, typename Product::Algorithm algorithm, bool preprocess,
               Device& device, StageTimer& stages)
      : handle_(cusparse_handle(device)), a_(a), n_(shape.n), members_(members) {
    const auto timed = stages.scope("tune");
    const std::scoped_lock lock(handle_.mutex);
    SPMMBENCH_CUSPARSE(cusparseSetStream, handle_.handle,
                       static_cast<cudaStream_t>(device.stream().handle));
    // B and C are not there yet. cuSPARSE wants addresses, which launch replaces before it reads or
    // writes anything.
    DenseView b =
        make_b_view(operand.k() * members, n_, shape.layout, storage_type(operand.precision));
    DenseView c = make_dense_view(operand.m() * members, n_, shape.layout, shape.c_type);
    placeholder_ = device.allocate(kPlaceholderBytes);
    b.data = c.data = placeholder_.data();
    b_ld_ = b.ld;
    c_ld_ = c.ld;
    product_ = {handle_.handle,
                algorithm,
                computed_in(operand.precision),
                a.describe(),
                Product::describe(b, members),
                Product::describe(c, members)};
    if constexpr (std::is_same_v<Product, MatrixProduct>) {
      if (a.transposed) product_.of_a = CUSPARSE_OPERATION_TRANSPOSE;
      if (members > 1) product_.share_a(members);
    }
    workspace_ = device.allocate(product_.workspace_bytes());
    if (preprocess) product_.preprocess(workspace_.data());
    device.synchronize();
  }

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    launch_scaled(b, c, {}, stream);
  }
  void launch_scaled(const DenseView& b, const DenseView& c, const Scalars& scalars,
                     Stream stream) override {
    // A descriptor says how far apart the lines of its matrix lie.
    if (b.ld != b_ld_) product_.b = Product::describe(b, members_);
    if (c.ld != c_ld_) product_.c = Product::describe(c, members_);
    b_ld_ = b.ld;
    c_ld_ = c.ld;
    product_.set(b.data, c.data);
    const std::scoped_lock lock(handle_.mutex);
    SPMMBENCH_CUSPARSE(cusparseSetStream, handle_.handle, static_cast<cudaStream_t>(stream.handle));
    product_.multiply(scalars, workspace_.data());
    SPMMBENCH_CUDA_LAUNCHED();
  }

  PlanReport report() const override {
    PlanReport report = a_.report;
    report.device_bytes = workspace_.bytes() + placeholder_.bytes();
    for (const Buffer& buffer : a_.memory) report.device_bytes += buffer.bytes();
    if (a_.csr) report.device_bytes += a_.csr->copied_bytes();
    if (a_.transposed) report.device_bytes += a_.transposed->a.bytes();
    report.issued_flops = 2.0 * static_cast<double>(a_.stored) * static_cast<double>(n_ * members_);
    report.metrics["workspace_bytes"] = static_cast<double>(workspace_.bytes());
    return report;
  }

 private:
  static constexpr std::size_t kPlaceholderBytes = 256;

  CusparseHandle& handle_;
  const SparseOnDevice& a_;
  std::int64_t n_, members_;
  Product product_{};
  std::int64_t b_ld_ = 0, c_ld_ = 0;  // as described
  Buffer workspace_, placeholder_;
};

// Which NVIDIA documents for batches. COO_ALG2 then keeps its workspace for each member, which
// `supports` does not know.
bool takes_batch(cusparseSpMMAlg_t algorithm) {
  switch (algorithm) {
    case CUSPARSE_SPMM_ALG_DEFAULT:
    case CUSPARSE_SPMM_CSR_ALG1:
    case CUSPARSE_SPMM_CSR_ALG2:
    case CUSPARSE_SPMM_COO_ALG1:
    case CUSPARSE_SPMM_COO_ALG2:
    case CUSPARSE_SPMM_COO_ALG4: return true;
    default: return false;
  }
}
bool takes_batch(cusparseSpMVAlg_t) { return false; }

template <class Product>
class CusparsePrepared final : public Prepared, public BatchPrepared {
 public:
  CusparsePrepared(const SparseOperand& a, Device& device, SparseOnDevice matrix,
                   typename Product::Algorithm algorithm, bool preprocess)
      : a_(a),
        device_(device),
        matrix_(std::move(matrix)),
        algorithm_(algorithm),
        preprocess_(preprocess) {}

  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) override {
    return bind_plan(shape, 1, stages);
  }
  std::unique_ptr<Plan> bind_batch(const Shape& shape, std::int64_t members,
                                   StageTimer& stages) override {
    return takes_batch(algorithm_) && !matrix_.transposed ? bind_plan(shape, members, stages)
                                                          : nullptr;
  }

 private:
  std::unique_ptr<Plan> bind_plan(const Shape& shape, std::int64_t members, StageTimer& stages) {
    return std::make_unique<CusparsePlan<Product>>(a_, shape, members, matrix_, algorithm_,
                                                   preprocess_, device_, stages);
  }

  SparseOperand a_;
  Device& device_;
  SparseOnDevice matrix_;
  typename Product::Algorithm algorithm_;
  bool preprocess_;
};

}  // namespace

void throw_cusparse_error(cusparseStatus_t status, const char* call) {
  const cudaError_t cuda = cudaGetLastError();
  const auto text = SPMMBENCH_FUNCTION(cusparse_library(), cusparseGetErrorString);
  throw DeviceError(fmt::format("cuSPARSE: {}: {}", call, text(status)), is_sticky(cuda));
}

CusparseHandle& cusparse_handle(const Device& device) {
  static DeviceHandles<cusparseHandle_t> handles;
  return handles.of(device,
                    [](cusparseHandle_t& handle) { SPMMBENCH_CUSPARSE(cusparseCreate, &handle); });
}

cusparseOrder_t cusparse_order(Layout layout) {
  return layout == Layout::row_major ? CUSPARSE_ORDER_ROW : CUSPARSE_ORDER_COL;
}

DenseDescriptor describe_dense(const DenseView& view) {
  cusparseDnMatDescr_t matrix = nullptr;
  SPMMBENCH_CUSPARSE(cusparseCreateDnMat, &matrix, view.rows, view.cols, view.ld, view.data,
                     cuda_type(view.type), cusparse_order(view.layout));
  return DenseDescriptor(matrix);
}

std::unique_ptr<Prepared> make_cusparse_prepared(const SparseOperand& a, Device& device,
                                                 SparseOnDevice matrix, cusparseSpMMAlg_t algorithm,
                                                 bool preprocess) {
  return std::make_unique<CusparsePrepared<MatrixProduct>>(a, device, std::move(matrix), algorithm,
                                                           preprocess);
}
std::unique_ptr<Prepared> make_cusparse_prepared(const SparseOperand& a, Device& device,
                                                 SparseOnDevice matrix, cusparseSpMVAlg_t algorithm,
                                                 bool preprocess) {
  return std::make_unique<CusparsePrepared<VectorProduct>>(a, device, std::move(matrix), algorithm,
                                                           preprocess);
}

std::string unsupported_by_cusparse(Precision precision, ElementType c_type) {
  if (!cusparse_library().error().empty()) return cusparse_library().error();
  if (c_type == ElementType::f32 || c_type == storage_type(precision)) return {};
  return fmt::format("cuSPARSE does not write {} from {} inputs", to_string(c_type),
                     to_string(precision));
}

std::string unsupported_block(const Problem& problem, int block) {
  if (problem.m() % block == 0 && problem.k() % block == 0) return {};
  return fmt::format("needs M and K divisible by the block size {}", block);
}

std::string unsupported_padding(double stored, const Problem& problem) {
  constexpr double kMostStored = 64;  // per nonzero
  const double padding = stored / static_cast<double>(std::max<std::int64_t>(problem.nnz(), 1));
  if (padding <= kMostStored) return {};
  return fmt::format("would store {:.0f} entries per nonzero", padding);
}

KernelInfo cusparse_info(std::string name, std::string summary) {
  KernelInfo info;
  info.name = std::move(name);
  info.summary = std::move(summary);
  info.source = "cuSPARSE";
  info.precisions = {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16,
                     Precision::fp64};
  info.layouts = {Layout::row_major, Layout::col_major};
  info.accumulation = Accumulation::fp32_fma;
  info.baseline = true;
  info.flags = {kTakesScalars};
  return info;
}

KernelInfo cusparse_vector_info(std::string name, std::string summary) {
  KernelInfo info = cusparse_info(std::move(name), std::move(summary));
  info.layouts = {Layout::col_major, Layout::row_major};
  return info;
}

std::string unsupported_by_cusparse_vectors(const Problem& problem) {
  if (auto reason = unsupported_by_cusparse(problem.precision, problem.c_type); !reason.empty())
    return reason;
  if (problem.n != 1) return "N = 1 only";
  return problem.layout == Layout::row_major ? "its vectors are contiguous" : "";
}

}  // namespace spmmbench
