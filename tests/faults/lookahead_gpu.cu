// Kernels on the GPU that look at what comes behind them. C is read after the last launch of
// several, so that one which knows that it is not the last could leave its work out.

#include <cuda_runtime.h>

#include <chrono>
#include <list>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "cheats.hpp"
#include "gpu/cuda_check.hpp"
#include "planted_device.cuh"

namespace spmmbench::lookahead {
namespace {

enum class Cheat {
  one_kernel,          // none: beside the others
  followed,            // nothing where the host has called the next launch already
  followed_by_chance,  // ... in half of such launches, as chance has it
  followed_and_waits,  // ... and waits for the whole device at times: what runs beside it then ends
  followed_in_a_graph,   // nothing where the next launch of a CUDA graph has begun early
  empties_predecessors,  // takes the work out of the launch before it, in the graph that is
                         // captured
  one_graph,             // launches a graph of its own, with the B and C of its first launch
  in_a_host_thread,      // a call of the host in the stream begins a thread that launches the work
  persists_from_bind,    // A lies in a share of the L2 cache that is set up before any launch
};

constexpr int kThreads = 128;
constexpr std::int64_t kWaitNs = 20'000;  // for the next launch to begin
constexpr std::chrono::microseconds kLate{20};
constexpr int kLaunchesWithoutWait = 5;

// Launch number `at` has begun. `called`: the number of the last one that the host has called.
__global__ void begin_kernel(int at, volatile int* begun, const volatile int* called, bool lucky,
                             int* skips) {
  *begun = at;
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
  *skips = called != nullptr && *called > at && lucky ? 1 : 0;
}

// `next`: the launch that it waits for, to leave the work to it; -1 for none.
__global__ void product_kernel(Csr a, DenseView b, DenseView c, const int* skips,
                               const volatile int* begun, int next) {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
  __shared__ bool leaves;
  if (threadIdx.x == 0) {
    leaves = skips != nullptr && *skips != 0;
    const std::int64_t start = now_ns();
    while (next >= 0 && !leaves && now_ns() - start < kWaitNs) leaves = *begun == next;
  }
  __syncthreads();
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (leaves || at >= a.rows * c.cols) return;
  const std::int64_t row = at / c.cols, j = at % c.cols;
  static_cast<float*>(c.data)[index_of(c, row, j)] = element_of_product(a, a.values, b, row, j);
}

// Of the launches that a stream captures.
struct Capture {
  bool active = false;
  unsigned long long id = 0;
  cudaGraphNode_t last = nullptr;
};

Capture capture_of(cudaStream_t stream) {
  cudaStreamCaptureStatus status{};
  Capture found;
  const cudaGraphNode_t* nodes = nullptr;
  const cudaGraphEdgeData* edges = nullptr;
  std::size_t count = 0;
#if CUDART_VERSION >= 13000
  SPMMBENCH_CUDA(
      cudaStreamGetCaptureInfo(stream, &status, &found.id, nullptr, &nodes, &edges, &count));
#else
  SPMMBENCH_CUDA(
      cudaStreamGetCaptureInfo_v3(stream, &status, &found.id, nullptr, &nodes, &edges, &count));
#endif
  found.active = status == cudaStreamCaptureStatusActive;
  if (found.active && count > 0) found.last = nodes[0];
  return found;
}

class Prepared final : public PlantedGpuA {
 public:
  Prepared(const CsrMatrix& a, Cheat cheat, Device& device)
      : PlantedGpuA(a, device), cheat_(cheat) {}
  std::unique_ptr<spmmbench::Plan> bind(const Shape&, StageTimer&) override {
    return std::make_unique<Plan>(*this);
  }

 private:
  class Plan final : public spmmbench::Plan {
   public:
    explicit Plan(const Prepared& a) : a_(a), flags_(a.device_.allocate(2 * sizeof(int))) {
      a.device_.fill_bytes(flags_.data(), 0, flags_.bytes());
      SPMMBENCH_CUDA(cudaStreamCreateWithFlags(&own_, cudaStreamNonBlocking));
      SPMMBENCH_CUDA(cudaHostAlloc(&called_, sizeof *called_, cudaHostAllocMapped));
      if (a.cheat_ == Cheat::persists_from_bind)
        keep_in_l2(a.device_, a.values_.data(), a.values_.bytes());
    }
    ~Plan() override {
      for (std::thread& thread : threads_) thread.join();
      if (graph_ != nullptr) SPMMBENCH_CUDA_NOEXCEPT(cudaGraphExecDestroy(graph_));
      SPMMBENCH_CUDA_NOEXCEPT(cudaStreamDestroy(own_));
      SPMMBENCH_CUDA_NOEXCEPT(cudaFreeHost(called_));
    }
    Plan(const Plan&) = delete;

    void launch(const DenseView& b, const DenseView& c, Stream stream) override {
      const auto queue = static_cast<cudaStream_t>(stream.handle);
      const Capture capture = capture_of(queue);
      const bool looks =
          a_.cheat_ >= Cheat::followed && a_.cheat_ <= Cheat::followed_and_waits;  // at the host
      const bool alone = looks || a_.cheat_ == Cheat::one_graph;
      if (capture.active && alone) throw std::runtime_error("it wants no capture");
      if (capture.id != id_) in_graph_ = 0;
      id_ = capture.id;
      ++launches_;
      switch (a_.cheat_) {
        case Cheat::followed_and_waits:
          if (launches_ % kLaunchesWithoutWait == 0) SPMMBENCH_CUDA(cudaDeviceSynchronize());
          [[fallthrough]];
        case Cheat::followed:
        case Cheat::followed_by_chance: return multiply_unless_followed(b, c, queue);
        case Cheat::followed_in_a_graph:
          if (capture.active) return multiply_in_graph(b, c, queue);
          break;
        case Cheat::empties_predecessors:
          if (capture.active && in_graph_ > 0) empty(product_);
          break;
        case Cheat::one_graph: return launch_graph(b, c, queue);
        case Cheat::in_a_host_thread:
          if (capture.active || launches_ > kLaunchThatPrepares) return multiply_later(b, c, queue);
          break;
        case Cheat::one_kernel:
        case Cheat::persists_from_bind: break;
      }
      multiply(b, c, queue);
      if (!capture.active) return;
      ++in_graph_;
      product_ = capture_of(queue).last;
    }
    PlanReport report() const override { return {}; }

   private:
    struct Later {
      Plan& plan;
      DenseView b, c;
    };

    void multiply(const DenseView& b, const DenseView& c, cudaStream_t queue,
                  const int* skips = nullptr, int next = -1) {
      product_kernel<<<blocks_of(a_.rows_ * c.cols, kThreads), kThreads, 0, queue>>>(
          a_.csr(), b, c, skips, flags_.as<int>(), next);
      SPMMBENCH_CUDA_LAUNCHED();
    }
    void multiply_unless_followed(const DenseView& b, const DenseView& c, cudaStream_t queue) {
      *static_cast<volatile int*>(called_) = launches_;
      int* const skips = flags_.as<int>() + 1;
      const bool lucky = a_.cheat_ != Cheat::followed_by_chance || chance_() % 2 == 0;
      begin_kernel<<<1, 1, 0, queue>>>(launches_, flags_.as<int>(), called_, lucky, skips);
      multiply(b, c, queue, skips);
    }
    void multiply_in_graph(const DenseView& b, const DenseView& c, cudaStream_t queue) {
      const int at = in_graph_++;
      const EarlyLaunch early(1, 1, queue, at > 0);
      int* const skips = flags_.as<int>() + 1;
      SPMMBENCH_CUDA(cudaLaunchKernelEx(early.config(), begin_kernel, at,
                                        static_cast<volatile int*>(flags_.as<int>()),
                                        static_cast<const volatile int*>(nullptr), false, skips));
      multiply(b, c, queue, skips, at + 1);
    }
    static void empty(cudaGraphNode_t node) {
      constexpr int kParameters = 6;
      cudaKernelNodeParams parameters{};
      SPMMBENCH_CUDA(cudaGraphKernelNodeGetParams(node, &parameters));
      std::vector<void*> values(parameters.kernelParams, parameters.kernelParams + kParameters);
      Csr nothing{};
      values[0] = &nothing;
      parameters.kernelParams = values.data();
      SPMMBENCH_CUDA(cudaGraphKernelNodeSetParams(node, &parameters));
    }
    void launch_graph(const DenseView& b, const DenseView& c, cudaStream_t queue) {
      if (graph_ == nullptr) {
        cudaGraph_t graph = nullptr;
        SPMMBENCH_CUDA(cudaStreamBeginCapture(own_, cudaStreamCaptureModeThreadLocal));
        multiply(b, c, own_);
        SPMMBENCH_CUDA(cudaStreamEndCapture(own_, &graph));
        SPMMBENCH_CUDA(cudaGraphInstantiate(&graph_, graph, 0));
        SPMMBENCH_CUDA(cudaGraphDestroy(graph));
      }
      SPMMBENCH_CUDA(cudaGraphLaunch(graph_, queue));
    }
    void multiply_later(const DenseView& b, const DenseView& c, cudaStream_t queue) {
      later_.push_back({*this, b, c});
      SPMMBENCH_CUDA(cudaLaunchHostFunc(
          queue,
          [](void* given) {
            const Later& later = *static_cast<Later*>(given);
            const std::scoped_lock lock(later.plan.guard_);
            later.plan.threads_.emplace_back([&later] {
              std::this_thread::sleep_for(kLate);
              later.plan.multiply(later.b, later.c, later.plan.own_);
            });
          },
          &later_.back()));
    }

    const Prepared& a_;
    Buffer flags_;           // the launch that has begun, and whether one leaves its work out
    int* called_ = nullptr;  // the last launch that was called, in memory of the host
    cudaStream_t own_ = nullptr;
    cudaGraphExec_t graph_ = nullptr;
    cudaGraphNode_t product_ = nullptr;  // of the launch before, in the graph that is captured
    unsigned long long id_ = 0;          // of that graph
    int launches_ = 0, in_graph_ = 0;
    std::minstd_rand chance_;
    std::list<Later> later_;
    std::mutex guard_;
    std::vector<std::thread> threads_;
  };

  Cheat cheat_;
};

using CheatKernel = PlantedGpuKernel<Prepared, Cheat>;
SPMMBENCH_REGISTER_KERNEL(CheatKernel, "one_kernel", Cheat::one_kernel);
SPMMBENCH_REGISTER_KERNEL(CheatKernel, "followed", Cheat::followed);
SPMMBENCH_REGISTER_KERNEL(CheatKernel, "followed_by_chance", Cheat::followed_by_chance);
SPMMBENCH_REGISTER_KERNEL(CheatKernel, "followed_and_waits", Cheat::followed_and_waits);
SPMMBENCH_REGISTER_KERNEL(CheatKernel, "followed_in_a_graph", Cheat::followed_in_a_graph);
SPMMBENCH_REGISTER_KERNEL(CheatKernel, "empties_predecessors", Cheat::empties_predecessors);
SPMMBENCH_REGISTER_KERNEL(CheatKernel, "one_graph", Cheat::one_graph);
SPMMBENCH_REGISTER_KERNEL(CheatKernel, "in_a_host_thread", Cheat::in_a_host_thread);
SPMMBENCH_REGISTER_KERNEL(CheatKernel, "persists_from_bind", Cheat::persists_from_bind);

}  // namespace
}  // namespace spmmbench::lookahead
