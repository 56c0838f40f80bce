// Kernels on the GPU that break in every way a sweep has to survive.

#include "gpu/cuda_check.hpp"
#include "planted_device.cuh"

namespace spmmbench {
namespace {

enum class Fault { wrong, illegal_address, endless, memory };

// Spins while `flag` is 0, which it stays; the address is never written by anybody.
__global__ void endless_kernel(const volatile int* flag, int* out) {
  while (*flag == 0) {
  }
  *out = 1;
}

__global__ void illegal_address_kernel(int* nowhere) { *nowhere = 1; }

class FaultyGpuPlan final : public Plan {
 public:
  FaultyGpuPlan(Fault fault, Device& device) : fault_(fault), flag_(device.allocate(8)) {
    device.fill_bytes(flag_.data(), 0, flag_.bytes());
  }
  void launch(const DenseView&, const DenseView& c, Stream stream) override {
    auto* queue = static_cast<cudaStream_t>(stream.handle);
    if (fault_ == Fault::wrong) SPMMBENCH_CUDA(cudaMemsetAsync(c.data, 0, c.bytes(), queue));
    if (fault_ == Fault::endless)
      endless_kernel<<<1, 1, 0, queue>>>(flag_.as<int>(), flag_.as<int>() + 1);
    if (fault_ == Fault::illegal_address)
      illegal_address_kernel<<<1, 1, 0, queue>>>(reinterpret_cast<int*>(std::uintptr_t{1} << 60));
    SPMMBENCH_CUDA_LAUNCHED();
  }
  PlanReport report() const override { return {}; }

 private:
  Fault fault_;
  Buffer flag_;
};

class FaultyGpuA final : public Prepared {
 public:
  FaultyGpuA(const CsrMatrix&, Fault fault, Device& device) : fault_(fault), device_(device) {
    if (fault == Fault::memory) const Buffer all = device.allocate(device.info().memory_bytes * 2);
  }
  std::unique_ptr<Plan> bind(const Shape&, StageTimer&) override {
    return std::make_unique<FaultyGpuPlan>(fault_, device_);
  }

 private:
  Fault fault_;
  Device& device_;
};

class FaultyGpuKernel final : public PlantedGpuKernel<FaultyGpuA, Fault> {
 public:
  FaultyGpuKernel(const char* name, Fault fault)
      : PlantedGpuKernel(planted_info(name, DeviceKind::cuda), fault) {}
};

SPMMBENCH_REGISTER_KERNEL(FaultyGpuKernel, "planted_gpu_wrong", Fault::wrong);
SPMMBENCH_REGISTER_KERNEL(FaultyGpuKernel, "planted_gpu_address", Fault::illegal_address);
SPMMBENCH_REGISTER_KERNEL(FaultyGpuKernel, "planted_gpu_endless", Fault::endless);
SPMMBENCH_REGISTER_KERNEL(FaultyGpuKernel, "planted_gpu_memory", Fault::memory);

}  // namespace
}  // namespace spmmbench
