// Kernels on the GPU that break in every way a sweep has to survive.

#include "gpu/cuda_check.hpp"
#include "planted.hpp"
#include "spmmbench/registry.hpp"

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

class PlantedGpuPlan final : public Plan {
 public:
  PlantedGpuPlan(Fault fault, Device& device) : fault_(fault), flag_(device.allocate(8)) {
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

class PlantedGpuPrepared final : public Prepared {
 public:
  PlantedGpuPrepared(Fault fault, Device& device) : fault_(fault), device_(device) {}
  std::unique_ptr<Plan> bind(const Shape&, StageTimer&) override {
    return std::make_unique<PlantedGpuPlan>(fault_, device_);
  }

 private:
  Fault fault_;
  Device& device_;
};

class PlantedGpuKernel final : public Kernel {
 public:
  PlantedGpuKernel(const char* name, Fault fault)
      : info_(planted_info(name, DeviceKind::cuda)), fault_(fault) {}
  const KernelInfo& info() const override { return info_; }
  Support supports(const Problem&, const DeviceInfo&) const override { return Support::yes(0); }
  std::unique_ptr<Prepared> prepare(const SparseOperand&, const Options&, Device& device,
                                    StageTimer&) const override {
    if (fault_ == Fault::memory) {
      const Buffer all = device.allocate(device.info().memory_bytes * 2);
    }
    return std::make_unique<PlantedGpuPrepared>(fault_, device);
  }

 private:
  KernelInfo info_;
  Fault fault_;
};

SPMMBENCH_REGISTER_KERNEL(PlantedGpuKernel, "planted_gpu_wrong", Fault::wrong);
SPMMBENCH_REGISTER_KERNEL(PlantedGpuKernel, "planted_gpu_address", Fault::illegal_address);
SPMMBENCH_REGISTER_KERNEL(PlantedGpuKernel, "planted_gpu_endless", Fault::endless);
SPMMBENCH_REGISTER_KERNEL(PlantedGpuKernel, "planted_gpu_memory", Fault::memory);

}  // namespace
}  // namespace spmmbench
