// A with its zeros stored, multiplied in fp8 by cuBLASLt: the baseline in fp8, which cuBLAS itself
// does not offer. cuBLASLt takes fp8 with both operands contiguous along K: A as it is row-major, B
// and C column-major. It names several algorithms, of which a plan keeps the one that is fastest
// when it is bound. Scales of blocks lie for it as they do here (spmmbench/block_scales.hpp); it
// then offers no fast sums.

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "common/dense_copy.hpp"
#include "common/device_handles.hpp"
#include "common/resident_scales.hpp"
#include "core/shared_library.hpp"
#include "gpu/cublas.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/element.cuh"
#include "spmmbench/block_scales.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/scalars.hpp"

namespace spmmbench::cublaslt_dense {
namespace {

constexpr std::size_t kLtWorkspaceBytes = std::size_t{32} << 20;  // as cuBLAS recommends on Hopper
constexpr int kMostAlgorithms = 8;

const SharedLibrary& cublaslt_library() {
  static const SharedLibrary library("libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR));
  return library;
}

#define SPMMBENCH_CUBLASLT(function, ...) \
  check_cublas(SPMMBENCH_FUNCTION(cublaslt_library(), function)(__VA_ARGS__), #function)

// A handle of the library that is destroyed with it.
template <class Handle>
using LtOwned = std::unique_ptr<std::remove_pointer_t<Handle>, cublasStatus_t (*)(Handle)>;

LtOwned<cublasLtMatrixLayout_t> layout_of(ElementType type, std::int64_t rows, std::int64_t cols,
                                          std::int64_t ld) {
  cublasLtMatrixLayout_t layout = nullptr;
  SPMMBENCH_CUBLASLT(cublasLtMatrixLayoutCreate, &layout, cuda_type(type),
                     static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(cols), ld);
  return {layout, SPMMBENCH_FUNCTION(cublaslt_library(), cublasLtMatrixLayoutDestroy)};
}

cublasLtHandle_t lt_handle(const Device& device) {
  static DeviceHandles<cublasLtHandle_t> handles;
  return handles
      .of(device, [](cublasLtHandle_t& handle) { SPMMBENCH_CUBLASLT(cublasLtCreate, &handle); })
      .handle;
}

const auto kFastSums =
    flag_option("fast", true, "0: sums leave the tensor cores for fp32 on the way");

// A with its zeros, the same for every shape.
struct DenseA8 {
  DenseA8(const SparseOperand& operand, bool fast_sums, Device& device, StageTimer& stages)
      : view(dense_shape(operand)),
        scales(operand, device),
        fast(fast_sums && scales.data() == nullptr) {
    view.scale = operand.scale();
    memory = upload_dense(operand, view, device, stages);
    view.data = memory.data();
  }

  DenseView view;
  ResidentScales scales;  // of blocks
  bool fast;
  Buffer memory;
};

class CublasLtDensePlan final : public Plan, public ScalingPlan {
 public:
  CublasLtDensePlan(const DenseA8& a, const Shape& shape, Device& device, StageTimer& stages)
      : handle_(lt_handle(device)),
        a_(a),
        b_(make_b_view(a.view.cols, shape.n, Layout::col_major, a.view.type)),
        c_(make_dense_view(a.view.rows, shape.n, Layout::col_major, shape.c_type)) {
    if (shape.ld_b != 0) b_.ld = shape.ld_b;
    if (shape.ld_c != 0) c_.ld = shape.ld_c;
    {
      const auto timed = stages.scope("upload");
      workspace_ = device.allocate(kLtWorkspaceBytes);
    }
    const auto timed = stages.scope("tune");
    describe();
    find_algorithms();
    keep_fastest(device);
  }

  void launch(const DenseView& b, const DenseView& c, Stream stream) override {
    launch_scaled(b, c, {}, stream);
  }
  void launch_scaled(const DenseView& b, const DenseView& c, const Scalars& scalars,
                     Stream stream) override {
    if (b.ld != b_.ld || c.ld != c_.ld) {
      b_.ld = b.ld;
      c_.ld = c.ld;
      describe();
    }
    if ((a_.scales.data() == nullptr) != (b.block_scales == nullptr))
      throw Error("A and B have scales of blocks, or neither has");
    multiply(b, c, scalars, found_[0].algo, stream);
    SPMMBENCH_CUDA_LAUNCHED();
  }

  PlanReport report() const override {
    PlanReport report;
    report.device_bytes = a_.memory.bytes() + a_.scales.bytes() + workspace_.bytes();
    report.params["fast"] = fmt::format("{:d}", a_.fast);
    report.metrics["algorithms"] = count_;
    report.issued_flops = 2.0 * static_cast<double>(a_.view.rows) *
                          static_cast<double>(a_.view.cols) * static_cast<double>(b_.cols);
    return report;
  }

 private:
  template <class Value>
  void set(cublasLtMatmulDescAttributes_t attribute, Value value) {
    SPMMBENCH_CUBLASLT(cublasLtMatmulDescSetAttribute, product_.get(), attribute, &value,
                       sizeof value);
  }

  void describe() {
    cublasLtMatmulDesc_t product = nullptr;
    SPMMBENCH_CUBLASLT(cublasLtMatmulDescCreate, &product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    product_ = {product, SPMMBENCH_FUNCTION(cublaslt_library(), cublasLtMatmulDescDestroy)};
    set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<std::int8_t>(a_.fast ? 1 : 0));
    if (a_.scales.data() != nullptr) {
      set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F);
      set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F);
      set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, a_.scales.data());
      set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, a_.scales.data());  // any, until a launch
    }
    layout_a_ = layout_of(a_.view.type, a_.view.cols, a_.view.rows, a_.view.ld);
    layout_b_ = layout_of(b_.type, b_.rows, b_.cols, b_.ld);
    layout_c_ = layout_of(c_.type, c_.rows, c_.cols, c_.ld);
  }

  void find_algorithms() {
    cublasLtMatmulPreference_t made = nullptr;
    SPMMBENCH_CUBLASLT(cublasLtMatmulPreferenceCreate, &made);
    const LtOwned<cublasLtMatmulPreference_t> preference(
        made, SPMMBENCH_FUNCTION(cublaslt_library(), cublasLtMatmulPreferenceDestroy));
    SPMMBENCH_CUBLASLT(cublasLtMatmulPreferenceSetAttribute, made,
                       CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kLtWorkspaceBytes,
                       sizeof kLtWorkspaceBytes);
    const cublasStatus_t status =
        SPMMBENCH_FUNCTION(cublaslt_library(), cublasLtMatmulAlgoGetHeuristic)(
            handle_, product_.get(), layout_a_.get(), layout_b_.get(), layout_c_.get(),
            layout_c_.get(), made, kMostAlgorithms, found_.data(), &count_);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || count_ == 0)
      throw Unsupported(a_.scales.data() != nullptr
                            ? "cuBLASLt has no algorithm for this shape with scales of blocks"
                            : "cuBLASLt has no algorithm for this shape in fp8");
    check_cublas(status, "cublasLtMatmulAlgoGetHeuristic");
  }

  // Puts it first.
  void keep_fastest(Device& device) {
    constexpr int kLaunches = 5;
    const Buffer b_memory = device.allocate(b_.bytes());
    const Buffer c_memory = device.allocate(c_.bytes());
    DenseView b = b_, c = c_;
    b.data = b_memory.data();
    c.data = c_memory.data();
    device.fill_uniform(b, 1, Precision::fp8_e4m3);
    Buffer scales;
    if (a_.scales.data() != nullptr) {
      scales = device.upload(std::vector<float>(scales_of_b(b.rows, b.cols), 1.0F));
      b.block_scales = scales.as<float>();
    }
    double fastest_us = std::numeric_limits<double>::infinity();
    int fastest = 0;
    for (int i = 0; i < count_; ++i) {
      const auto launch = [&] { multiply(b, c, {}, found_[i].algo, device.stream()); };
      launch();
      const double us = device.time_us(launch, kLaunches);
      if (us < fastest_us) fastest_us = us, fastest = i;
    }
    std::swap(found_[0], found_[fastest]);
  }

  void multiply(const DenseView& b, const DenseView& c, const Scalars& scalars,
                const cublasLtMatmulAlgo_t& algorithm, Stream stream) {
    if (b.block_scales != nullptr) set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, b.block_scales);
    const float scale = a_.view.scale * b.scale;
    const float alpha = static_cast<float>(scalars.alpha) * scale;
    const auto beta = static_cast<float>(scalars.beta);
    SPMMBENCH_CUBLASLT(cublasLtMatmul, handle_, product_.get(), &alpha, a_.view.data,
                       layout_a_.get(), b.data, layout_b_.get(), &beta, c.data, layout_c_.get(),
                       c.data, layout_c_.get(), &algorithm, workspace_.data(), workspace_.bytes(),
                       static_cast<cudaStream_t>(stream.handle));
  }

  cublasLtHandle_t handle_;
  const DenseA8& a_;
  DenseView b_, c_;  // their shapes
  LtOwned<cublasLtMatmulDesc_t> product_{nullptr, nullptr};
  LtOwned<cublasLtMatrixLayout_t> layout_a_{nullptr, nullptr}, layout_b_{nullptr, nullptr},
      layout_c_{nullptr, nullptr};
  std::array<cublasLtMatmulHeuristicResult_t, kMostAlgorithms> found_{};
  int count_ = 0;
  Buffer workspace_;
};

class CublasLtDensePrepared final : public Prepared {
 public:
  CublasLtDensePrepared(const SparseOperand& a, bool fast, Device& device, StageTimer& stages)
      : a_(a, fast, device, stages), device_(device) {}

  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer& stages) override {
    return std::make_unique<CublasLtDensePlan>(a_, shape, device_, stages);
  }

 private:
  DenseA8 a_;
  Device& device_;
};

class CublasLtDense final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }

  Support supports(const Problem& problem, const DeviceInfo& device) const override {
    constexpr std::int64_t kMultiple = 16;
    for (const auto& [name, size] : {std::pair{"M", problem.m()}, std::pair{"K", problem.k()}})
      if (size % kMultiple != 0)
        return Support::no(
            fmt::format("cuBLASLt takes fp8 with {} a multiple of {}", name, kMultiple));
    if (has_scales_of_blocks(problem) && problem.n % 4 != 0)
      return Support::no("cuBLASLt takes scales of the blocks of B with N a multiple of 4");
    if (!cublaslt_library().error().empty()) return Support::no(cublaslt_library().error());
    Support support = supports_dense(problem, device);
    // With the B and the C of the search.
    if (support.ok)
      support.device_bytes +=
          kLtWorkspaceBytes + ResidentScales::copied_bytes(problem) +
          (has_scales_of_blocks(problem) ? scales_of_b(problem.k(), problem.n) * sizeof(float)
                                         : 0) +
          make_b_view(problem.k(), problem.n, problem.layout, storage_type(problem.precision))
              .bytes() +
          make_dense_view(problem.m(), problem.n, problem.layout, problem.c_type).bytes();
    return support;
  }

  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options& options, Device& device,
                                    StageTimer& stages) const override {
    (void)lt_handle(device);  // before anything is timed
    return std::make_unique<CublasLtDensePrepared>(a, kFastSums(options), device, stages);
  }

 private:
  KernelInfo info_ = {
      .name = "cublaslt_dense",
      .summary = "cuBLASLt in fp8 on A with its zeros stored, the fastest of its algorithms",
      .source = "cuBLASLt",
      .min_compute_capability = 90,
      .precisions = {Precision::fp8_e4m3_block, Precision::fp8_e4m3},
      .c_types = {ElementType::f32, ElementType::f16, ElementType::bf16},
      .layouts = {Layout::col_major},
      .accumulation = Accumulation::fp32_tensor_core,
      .baseline = true,
      .options = {kFastSums},
      .flags = {kTakesScalars},
  };
};

SPMMBENCH_REGISTER_KERNEL(CublasLtDense);

}  // namespace
}  // namespace spmmbench::cublaslt_dense
