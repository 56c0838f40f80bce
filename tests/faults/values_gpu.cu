// A kernel on the GPU that takes new values of A in place, and one that has left some out when it
// prepared.

#include <cuda_runtime.h>

#include <memory>
#include <string>
#include <vector>

#include "cheats.hpp"
#include "gpu/cuda_check.hpp"
#include "planted.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::new_values {
namespace {

constexpr int kThreads = 128;

struct Csr {
  std::int64_t rows;
  const std::int64_t* row_ptr;
  const std::int32_t* col_idx;
  const float* values;
};

__global__ void __launch_bounds__(kThreads) product_kernel(Csr a, DenseView b, DenseView c) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= a.rows * c.cols) return;
  const std::int64_t row = at / c.cols, column = at % c.cols;
  float sum = 0;
  for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
    sum += a.values[e] * static_cast<const float*>(b.data)[a.col_idx[e] * b.ld + column];
  static_cast<float*>(c.data)[row * c.ld + column] = sum;
}

// What is zero stays so.
__global__ void __launch_bounds__(kThreads)
    take_kernel(const float* values, std::int64_t count, float* kept) {
  const std::int64_t e = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (e < count && kept[e] != 0) kept[e] = values[e];
}

class Prepared final : public spmmbench::Prepared {
 public:
  Prepared(const SparseOperand& a, bool leaves_out, Device& device)
      : a_(a),
        row_ptr_(device.upload(a.a->row_ptr)),
        col_idx_(device.upload(a.a->col_idx)),
        values_(device.upload(leaves_out ? without_small_values(*a.a) : a.a->values)) {}
  std::unique_ptr<spmmbench::Plan> bind(const Shape&, StageTimer&) override {
    return std::make_unique<Plan>(*this);
  }
  void take_values(Stream stream) override {
    const std::int64_t count = a_.nnz();
    take_kernel<<<static_cast<unsigned>((count + kThreads - 1) / kThreads), kThreads, 0,
                  static_cast<cudaStream_t>(stream.handle)>>>(
        static_cast<const float*>(a_.on_device->values), count, values_.as<float>());
    SPMMBENCH_CUDA_LAUNCHED();
  }

 private:
  class Plan final : public spmmbench::Plan {
   public:
    explicit Plan(const Prepared& a) : a_(a) {}
    void launch(const DenseView& b, const DenseView& c, Stream stream) override {
      const Csr csr{a_.a_.m(), a_.row_ptr_.as<std::int64_t>(), a_.col_idx_.as<std::int32_t>(),
                    a_.values_.as<float>()};
      product_kernel<<<static_cast<unsigned>((csr.rows * c.cols + kThreads - 1) / kThreads),
                       kThreads, 0, static_cast<cudaStream_t>(stream.handle)>>>(csr, b, c);
      SPMMBENCH_CUDA_LAUNCHED();
    }
    PlanReport report() const override { return {}; }

   private:
    const Prepared& a_;
  };

  SparseOperand a_;
  Buffer row_ptr_, col_idx_, values_;
};

class CheatKernel final : public Kernel {
 public:
  CheatKernel(const char* name, bool leaves_out)
      : info_(planted_info(std::string("cheat_gpu_") + name, DeviceKind::cuda)),
        leaves_out_(leaves_out) {
    info_.precisions = {Precision::fp32};
    info_.layouts = {Layout::row_major};
    info_.takes_values = true;
  }
  const KernelInfo& info() const override { return info_; }
  Support supports(const Problem&, const DeviceInfo&) const override { return Support::yes(0); }
  std::unique_ptr<spmmbench::Prepared> prepare(const SparseOperand& a, const Options&,
                                               Device& device, StageTimer& stages) const override {
    const auto timed = stages.scope("build");
    return std::make_unique<Prepared>(a, leaves_out_, device);
  }

 private:
  KernelInfo info_;
  bool leaves_out_;
};

SPMMBENCH_REGISTER_KERNEL(CheatKernel, "takes_values", false);
SPMMBENCH_REGISTER_KERNEL(CheatKernel, "leaves_out_with_its_plan", true);

}  // namespace
}  // namespace spmmbench::new_values
