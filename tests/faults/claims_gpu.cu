// Kernels on the GPU that say of themselves what is not so, that have a thread of the host beside
// their launches, and that leave something behind for the kernels that follow.

#include <cuda_runtime.h>

#include <atomic>
#include <memory>
#include <thread>

#include "cheats.hpp"
#include "gpu/cuda_check.hpp"
#include "planted_device.cuh"

namespace spmmbench::claims {
namespace {

enum class Cheat {
  reports_a_look,     // at B, in less than no time, which counts in each product
  names_a_pick,       // so that that kernel is tested; leaves out a nonzero
  runs_on,            // leaves a kernel at work when its plan ends
  leaves_a_window,    // of B, whose lines are then evicted first
  warms_in_a_thread,  // which reads B on and on, from a later launch on
};

constexpr int kThreads = 128;

__global__ void __launch_bounds__(kThreads) multiply_kernel(Csr a, DenseView b, DenseView c) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= a.rows * c.cols) return;
  const std::int64_t row = at / c.cols, j = at % c.cols;
  static_cast<float*>(c.data)[index_of(c, row, j)] = element_of_product(a, a.values, b, row, j);
}

__global__ void run_on_kernel(std::int64_t ns) {
  const std::int64_t start = now_ns();
  while (now_ns() - start < ns) {
  }
}

__global__ void __launch_bounds__(kThreads)
    read_kernel(const volatile float* data, std::int64_t values) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < values;
       i += step)
    (void)data[i];
}

// A stream that does not wait for others.
class OwnStream {
 public:
  OwnStream() { SPMMBENCH_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~OwnStream() { SPMMBENCH_CUDA_NOEXCEPT(cudaStreamDestroy(stream_)); }
  OwnStream(const OwnStream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Prepared final : public PlantedGpuA {
 public:
  Prepared(const CsrMatrix& a, Cheat cheat, Device& device)
      : PlantedGpuA(a, device), cheat_(cheat) {
    if (cheat == Cheat::names_a_pick) values_ = device.upload(without_small_values_or_first(a));
  }
  std::unique_ptr<spmmbench::Plan> bind(const Shape&, StageTimer&) override {
    return std::make_unique<Plan>(*this);
  }

 private:
  class Plan final : public spmmbench::Plan {
   public:
    explicit Plan(const Prepared& a) : a_(a) {}
    Plan(const Plan&) = delete;
    ~Plan() override {
      ends_ = true;
      if (thread_.joinable()) thread_.join();
      if (a_.cheat_ == Cheat::runs_on) {
        const OwnStream stream;
        constexpr std::int64_t kNs = std::chrono::nanoseconds(kRunsOn).count();
        run_on_kernel<<<a_.device_.info().sm_count, kThreads, 0, stream.get()>>>(kNs);
      }
      if (a_.cheat_ == Cheat::leaves_a_window && b_.data != nullptr) leave_window();
    }

    void launch(const DenseView& b, const DenseView& c, Stream stream) override {
      multiply_kernel<<<blocks_of(a_.rows_ * c.cols, kThreads), kThreads, 0,
                        static_cast<cudaStream_t>(stream.handle)>>>(a_.csr(), b, c);
      SPMMBENCH_CUDA_LAUNCHED();
      b_ = b;
      if (a_.cheat_ == Cheat::warms_in_a_thread && ++launches_ == kLaunchThatPrepares)
        thread_ = std::thread([this, b] { warm(b); });
    }
    PlanReport report() const override {
      PlanReport report;
      if (a_.cheat_ == Cheat::reports_a_look) report.metrics["inspect_b_us"] = -1;
      if (a_.cheat_ == Cheat::names_a_pick) report.pick.emplace().kernel = "csr_naive";
      return report;
    }

   private:
    void warm(const DenseView& b) const {
      const OwnStream stream;
      const auto values = static_cast<std::int64_t>(b.bytes() / sizeof(float));
      while (!ends_) {
        read_kernel<<<a_.device_.info().sm_count, kThreads, 0, stream.get()>>>(
            static_cast<const float*>(b.data), values);
        SPMMBENCH_CUDA_NOEXCEPT(cudaStreamSynchronize(stream.get()));
      }
    }
    void leave_window() const {
      cudaStreamAttrValue value{};
      value.accessPolicyWindow.base_ptr = b_.data;
      value.accessPolicyWindow.num_bytes = b_.bytes();
      value.accessPolicyWindow.hitRatio = 1;
      value.accessPolicyWindow.hitProp = cudaAccessPropertyStreaming;
      value.accessPolicyWindow.missProp = cudaAccessPropertyNormal;
      SPMMBENCH_CUDA_NOEXCEPT(
          cudaStreamSetAttribute(static_cast<cudaStream_t>(a_.device_.stream().handle),
                                 cudaStreamAttributeAccessPolicyWindow, &value));
    }

    const Prepared& a_;
    DenseView b_ = {};
    int launches_ = 0;
    std::atomic<bool> ends_ = false;
    std::thread thread_;
  };

  Cheat cheat_;
};

using CheatKernel = PlantedGpuKernel<Prepared, Cheat>;
SPMMBENCH_REGISTER_KERNEL(CheatKernel, "reports_a_look", Cheat::reports_a_look);
SPMMBENCH_REGISTER_KERNEL(CheatKernel, "names_a_pick", Cheat::names_a_pick);
SPMMBENCH_REGISTER_KERNEL(CheatKernel, "runs_on", Cheat::runs_on);
SPMMBENCH_REGISTER_KERNEL(CheatKernel, "leaves_a_window", Cheat::leaves_a_window);
SPMMBENCH_REGISTER_KERNEL(CheatKernel, "warms_in_a_thread", Cheat::warms_in_a_thread);

}  // namespace
}  // namespace spmmbench::claims
