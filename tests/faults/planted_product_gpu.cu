// The same products on the GPU: one thread per element of C.

#include <cuda_fp16.h>

#include <memory>

#include "gpu/cuda_check.hpp"
#include "gpu/element.cuh"
#include "planted_device.cuh"
#include "planted_product.hpp"

namespace spmmbench::planted_product {
namespace {

// `entry`: where the fault lies.
template <class TB, class TC>
__global__ void product_kernel(Csr a, std::int64_t entry, DenseView b, DenseView c,
                               std::int64_t columns, ProductFault fault) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= a.rows * columns) return;
  const std::int64_t row = at / columns, j = at % columns;
  float sum = 0;
  for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e) {
    if (fault == ProductFault::drop && e == entry) continue;
    std::int64_t from = e;
    if (fault == ProductFault::swap && e == entry && e + 1 < a.row_ptr[row + 1]) from = e + 1;
    if (fault == ProductFault::swap && e == entry + 1 && e > a.row_ptr[row]) from = e - 1;
    const float product =
        a.values[e] * to_float(static_cast<const TB*>(b.data)[index_of(b, a.col_idx[from], j)]);
    sum += fault == ProductFault::twice && e == entry ? 2 * product : product;
    if (fault == ProductFault::half_sums) sum = __half2float(__float2half_rn(sum));
  }
  static_cast<TC*>(c.data)[index_of(c, row, j)] = from_float<TC>(sum);
}

class GpuProduct final : public PlantedGpuA {
 public:
  GpuProduct(const CsrMatrix& a, ProductFault fault, Device& device)
      : PlantedGpuA(a, device), entry_(planted_entry(a)), fault_(fault) {}
  std::unique_ptr<Plan> bind(const Shape&, StageTimer&) override {
    return std::make_unique<GpuPlan>(*this);
  }

 private:
  class GpuPlan final : public Plan {
   public:
    explicit GpuPlan(const GpuProduct& product) : product_(product) {}
    void launch(const DenseView& b, const DenseView& c, Stream stream) override {
      const GpuProduct& p = product_;
      const auto queue = static_cast<cudaStream_t>(stream.handle);
      if (p.fault_ == ProductFault::clears_b)
        SPMMBENCH_CUDA(cudaMemsetAsync(b.data, 0, b.bytes(), queue));
      const bool keeps = p.fault_ == ProductFault::kept;
      if (keeps && b.data == kept_b_) {
        SPMMBENCH_CUDA(
            cudaMemcpyAsync(c.data, kept_c_.data(), c.bytes(), cudaMemcpyDefault, queue));
        return;
      }
      const bool stale =
          p.fault_ == ProductFault::stale_strip && launches_++ >= kLaunchesBeforeStale;
      const std::int64_t columns = c.cols - (stale ? kStaleStrip : 0);
      if (p.rows_ * columns <= 0) return;
      constexpr int kThreads = 128;
      const unsigned blocks = blocks_of(p.rows_ * columns, kThreads);
      visit_element_type(b.type, [&](auto* b_tag) {
        visit_element_type(c.type, [&](auto* c_tag) {
          product_kernel<std::remove_pointer_t<decltype(b_tag)>,
                         std::remove_pointer_t<decltype(c_tag)>>
              <<<blocks, kThreads, 0, queue>>>(p.csr(), p.entry_, b, c, columns, p.fault_);
        });
      });
      SPMMBENCH_CUDA_LAUNCHED();
      if (!keeps) return;
      kept_b_ = b.data;
      kept_c_ = p.device_.allocate(c.bytes());
      SPMMBENCH_CUDA(cudaMemcpyAsync(kept_c_.data(), c.data, c.bytes(), cudaMemcpyDefault, queue));
    }
    PlanReport report() const override { return {}; }

   private:
    const GpuProduct& product_;
    int launches_ = 0;
    const void* kept_b_ = nullptr;
    Buffer kept_c_;
  };

  std::int64_t entry_;
  ProductFault fault_;
};

class GpuProductKernel final : public PlantedGpuKernel<GpuProduct, ProductFault> {
 public:
  explicit GpuProductKernel(const PlantedProduct& planted)
      : PlantedGpuKernel(planted_info(std::string("product_gpu_") + planted.name, DeviceKind::cuda),
                         planted.fault) {
    info_.c_types.assign(kElementTypes.begin(), kElementTypes.end());
  }
};

[[maybe_unused]] const bool kRegistered = [] {
  for (const PlantedProduct& planted : kPlantedProducts)
    Registry<Kernel>::instance().add(std::make_unique<GpuProductKernel>(planted));
  return true;
}();

}  // namespace
}  // namespace spmmbench::planted_product
