#include "cusparselt/prepared.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "common/dense_copy.hpp"
#include "common/device_handles.hpp"
#include "cusparse/cusparse.hpp"
#include "cusparselt/library.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/element.cuh"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

constexpr unsigned kAlignment = 16;  // bytes, of A, B and C
constexpr float kZero = 0;

const CusparseLt& lt() {
  static const CusparseLt& library = []() -> const CusparseLt& {
    const CusparseLtLookup found = find_cusparselt();
    if (found.library == nullptr) throw Unsupported(found.reason);
    return *found.library;
  }();
  return library;
}

void check(cusparseStatus_t status, const char* call) {
  if (status == CUSPARSE_STATUS_SUCCESS) return;
  const cudaError_t cuda = cudaGetLastError();
  throw DeviceError(fmt::format("cuSPARSELt: {}: {}", call, lt().GetErrorString(status)),
                    is_sticky(cuda));
}

#define SPMMBENCH_LT(name, ...) check(lt().name(__VA_ARGS__), "cusparseLt" #name)

const cusparseLtHandle_t* handle_of(const Device& device) {
  static DeviceHandles<cusparseLtHandle_t> handles;
  return &handles.of(device, [](cusparseLtHandle_t& handle) { SPMMBENCH_LT(Init, &handle); })
              .handle;
}

cudaStream_t stream_of(const Device& device) {
  return static_cast<cudaStream_t>(device.stream().handle);
}

// cuSPARSELt keeps pointers between its structs, so nothing here moves.
class Matrix {
 public:
  enum class Kind { dense, structured };

  Matrix(const cusparseLtHandle_t* handle, const DenseView& view, Kind kind) {
    const cudaDataType type = cuda_type(view.type);
    const cusparseOrder_t order = cusparse_order(view.layout);
    if (kind == Kind::dense)
      SPMMBENCH_LT(DenseDescriptorInit, handle, &matrix_, view.rows, view.cols, view.ld, kAlignment,
                   type, order);
    else
      SPMMBENCH_LT(StructuredDescriptorInit, handle, &matrix_, view.rows, view.cols, view.ld,
                   kAlignment, type, order, CUSPARSELT_SPARSITY_50_PERCENT);
  }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;
  ~Matrix() { (void)lt().MatDescriptorDestroy(&matrix_); }

  const cusparseLtMatDescriptor_t* get() const { return &matrix_; }

 private:
  cusparseLtMatDescriptor_t matrix_{};
};

struct Description {  // of C = A * B, or of A times the transpose of B
  Description(const cusparseLtHandle_t* handle, const Matrix& a, const Matrix& b,
              cusparseOperation_t of_b, const Matrix& c) {
    SPMMBENCH_LT(MatmulDescriptorInit, handle, &value, CUSPARSE_OPERATION_NON_TRANSPOSE, of_b,
                 a.get(), b.get(), c.get(), c.get(), CUSPARSE_COMPUTE_32F);
  }
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;

  cusparseLtMatmulDescriptor_t value{};
};

struct Algorithm {
  Algorithm(const cusparseLtHandle_t* handle, const Description& product) : handle(handle) {
    SPMMBENCH_LT(MatmulAlgSelectionInit, handle, &value, &product.value,
                 CUSPARSELT_MATMUL_ALG_DEFAULT);
  }
  Algorithm(const Algorithm&) = delete;
  Algorithm& operator=(const Algorithm&) = delete;
  ~Algorithm() { (void)lt().MatmulAlgSelectionDestroy(&value); }

  int attribute(cusparseLtMatmulAlgAttribute_t which) const {
    int out = 0;
    SPMMBENCH_LT(MatmulAlgGetAttribute, handle, &value, which, &out, sizeof(out));
    return out;
  }

  // Takes what a search has found for another.
  void take(const Algorithm& found) {
    for (const auto which : {CUSPARSELT_MATMUL_ALG_CONFIG_ID, CUSPARSELT_MATMUL_SPLIT_K,
                             CUSPARSELT_MATMUL_SPLIT_K_MODE, CUSPARSELT_MATMUL_SPLIT_K_BUFFERS}) {
      const int chosen = found.attribute(which);
      if (attribute(which) != chosen)
        SPMMBENCH_LT(MatmulAlgSetAttribute, handle, &value, which, &chosen, sizeof(chosen));
    }
  }

  const cusparseLtHandle_t* handle;
  cusparseLtMatmulAlgSelection_t value{};
};

struct Product {
  Product(const cusparseLtHandle_t* handle, const Description& product,
          const Algorithm& algorithm) {
    SPMMBENCH_LT(MatmulPlanInit, handle, &value, &product.value, &algorithm.value);
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;
  ~Product() { (void)lt().MatmulPlanDestroy(&value); }

  cusparseLtMatmulPlan_t value{};
};

// A, the same for every shape.
struct StructuredA {
  StructuredA(const SparseOperand& a, Device& device, StageTimer& stages)
      : handle(handle_of(device)),
        view(make_dense_view(a.m(), a.k(), Layout::row_major, storage_type(a.precision))),
        matrix(handle, view, Matrix::Kind::structured),
        nnz(a.nnz()),
        scale(a.scale()) {
    const Buffer dense = upload_dense(a, view, device, stages);
    const auto timed = stages.scope("build");
    constexpr int kIsSparse = 1;  // of the two factors it is the left one that is sparse
    std::size_t bytes = 0, buffer_bytes = 0;
    SPMMBENCH_LT(SpMMACompressedSize2, handle, matrix.get(), &bytes, &buffer_bytes);
    compressed = device.allocate(bytes);
    const Buffer buffer = device.allocate(buffer_bytes);
    SPMMBENCH_LT(SpMMACompress2, handle, matrix.get(), kIsSparse, CUSPARSE_OPERATION_NON_TRANSPOSE,
                 dense.data(), compressed.data(), buffer.data(), stream_of(device));
    device.synchronize();
  }

  FormatStats stats() const {
    FormatStats out;
    out.name = "cusparselt";
    out.bytes = static_cast<std::int64_t>(compressed.bytes());
    out.stored = view.rows * view.cols / 2;
    out.index_bytes = out.bytes - out.stored * static_cast<std::int64_t>(bytes_of(view.type));
    out.fill = static_cast<double>(nnz) / static_cast<double>(out.stored);
    return out;
  }

  const cusparseLtHandle_t* handle;
  DenseView view;
  Matrix matrix;
  std::int64_t nnz;
  float scale;
  Buffer compressed;
};

// `ld` is 0 where it is not known when the plan is bound.
DenseView with_ld(DenseView view, std::int64_t ld) {
  if (ld != 0) view.ld = ld;
  return view;
}

// The transpose of a column-major matrix, as it lies.
DenseView row_major_of(DenseView view) {
  if (view.layout == Layout::row_major) return view;
  std::swap(view.rows, view.cols);
  view.layout = Layout::row_major;
  return view;
}

// What the library keeps of a product whose B and C have these shapes and lines. Without `found`
// the algorithm is its default, until a search.
struct BoundProduct {
  BoundProduct(const StructuredA& a, const DenseView& b, const DenseView& c,
               const Algorithm* found = nullptr)
      : matrix_b(a.handle, row_major_of(b), Matrix::Kind::dense),
        matrix_c(a.handle, c, Matrix::Kind::dense),
        description(a.handle, a.matrix, matrix_b,
                    b.layout == Layout::row_major ? CUSPARSE_OPERATION_NON_TRANSPOSE
                                                  : CUSPARSE_OPERATION_TRANSPOSE,
                    matrix_c),
        algorithm(a.handle, description) {
    if (found != nullptr) algorithm.take(*found);
    product.emplace(a.handle, description, algorithm);
  }

  std::size_t workspace_bytes() const {
    std::size_t bytes = 0;
    SPMMBENCH_LT(MatmulGetWorkspace, algorithm.handle, &product->value, &bytes);
    return bytes;
  }

  Matrix matrix_b, matrix_c;
  Description description;
  Algorithm algorithm;
  std::optional<Product> product;
};

class CusparseLtPlan final : public Plan {
 public:
  CusparseLtPlan(const StructuredA& a, const Shape& shape, Precision precision, Device& device,
                 StageTimer& stages)
      : a_(a),
        device_(device),
        b_(with_ld(make_b_view(a.view.cols, shape.n, shape.layout, storage_type(precision)),
                   shape.ld_b)),
        c_(with_ld(make_dense_view(a.view.rows, shape.n, shape.layout, shape.c_type), shape.ld_c)),
        bound_(std::make_unique<BoundProduct>(a, b_, c_)) {
    const auto timed = stages.scope("tune");
    search(precision);
    workspace_ = device.allocate(bound_->workspace_bytes());
  }

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    if (b.ld != b_.ld || c.ld != c_.ld) bind_lines(b.ld, c.ld);
    auto cuda_stream = static_cast<cudaStream_t>(stream.handle);
    const float alpha = a_.scale * b.scale;
    SPMMBENCH_LT(Matmul, a_.handle, &bound_->product->value, &alpha, a_.compressed.data(), b.data,
                 &kZero, c.data, c.data, workspace_.data(), &cuda_stream, 1);
    SPMMBENCH_CUDA_LAUNCHED();
  }

  PlanReport report() const override {
    PlanReport report;
    report.device_bytes = a_.compressed.bytes() + workspace_.bytes();
    report.format = a_.stats();
    report.params["version"] = lt().version();
    report.params["algorithm"] =
        fmt::format("{}", bound_->algorithm.attribute(CUSPARSELT_MATMUL_ALG_CONFIG_ID));
    report.params["split_k"] =
        fmt::format("{}", bound_->algorithm.attribute(CUSPARSELT_MATMUL_SPLIT_K));
    report.issued_flops =
        2.0 * static_cast<double>(report.format->stored) * static_cast<double>(b_.cols);
    report.metrics["workspace_bytes"] = static_cast<double>(workspace_.bytes());
    return report;
  }

 private:
  // Times the library's algorithms on a B and a C of its own and leaves the fastest in the plan.
  void search(Precision precision) {
    const Buffer b_memory = device_.allocate(b_.bytes());
    const Buffer c_memory = device_.allocate(c_.bytes());
    DenseView b = b_;
    b.data = b_memory.data();
    device_.fill_uniform(b, 1, precision);
    cudaStream_t stream = stream_of(device_);
    SPMMBENCH_LT(MatmulSearch, a_.handle, &bound_->product->value, &a_.scale, a_.compressed.data(),
                 b.data, &kZero, c_memory.data(), c_memory.data(), nullptr, &stream, 1);
    device_.synchronize();
  }

  // For launches with other lines, by the same algorithm. One whose workspace grows with them waits
  // for the launches before.
  void bind_lines(std::int64_t ld_b, std::int64_t ld_c) {
    b_.ld = ld_b;
    c_.ld = ld_c;
    bound_ = std::make_unique<BoundProduct>(a_, b_, c_, &bound_->algorithm);
    if (const std::size_t bytes = bound_->workspace_bytes(); bytes > workspace_.bytes()) {
      device_.wait_idle();
      workspace_ = device_.allocate(bytes);
    }
  }

  const StructuredA& a_;
  Device& device_;
  DenseView b_, c_;  // their shapes
  std::unique_ptr<BoundProduct> bound_;
  Buffer workspace_;
};

class CusparseLtPrepared final : public Prepared {
 public:
  CusparseLtPrepared(const SparseOperand& a, Device& device, StageTimer& stages)
      : a_(a, device, stages), precision_(a.precision), device_(device) {}

  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) override {
    return std::make_unique<CusparseLtPlan>(a_, shape, precision_, device_, stages);
  }

 private:
  StructuredA a_;
  Precision precision_;
  Device& device_;
};

}  // namespace

std::string cusparselt_missing() { return find_cusparselt().reason; }

std::unique_ptr<Prepared> prepare_cusparselt(const SparseOperand& a, Device& device,
                                             StageTimer& stages) {
  (void)handle_of(device);  // before anything is timed
  return std::make_unique<CusparseLtPrepared>(a, device, stages);
}

}  // namespace spmmbench
