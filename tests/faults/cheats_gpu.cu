// Kernels on the GPU that fit themselves to the test. Each gives right results where it believes
// that somebody looks. A launch is three device kernels: the first decides what the second does,
// and the third notes what the next launch will decide by.

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "cheats.hpp"
#include "gpu/cuda_check.hpp"
#include "planted_device.cuh"

namespace spmmbench {
namespace {

enum class Cheat {
  none,
  same_probes,             // nothing where 64 values of B and C are what the last launch left
  kept_for_every_address,  // a C kept for each address of B is given again
  not_again_at_once,       // nothing within microseconds of the last launch
  fewer_rows_at_once,      // half of the rows then
  last_of_a_batch,         // works in the last launch of a batch, whose length it has learned
  first_of_a_graph,        // nothing in all launches of a graph but the first
  half_of_a_graph,         // nothing in every second launch of a graph
  after_the_first_replay,  // the last launch of a graph alone, when it is launched once more
  with_a_host_function,    // ... with a call of the host in the graph; of one launch none
  with_a_slow_one,         // ... which takes longer than a sample, so that this has one launch
  long_rows_once,          // the longest rows in the first launch of a graph alone
  once_for_a_constant_b,   // works there alone, and has declared that it looks at B in advance
  beside_each_other,       // takes the order out of the graph
  starts_early,            // starts before its predecessor has ended, and does not wait for it
  in_a_stream,             // works on a stream of its own, for which the caller's does not wait
  in_a_stream_after,       // ... and which waits for the caller's
  persists,                // keeps B in a share of the L2 cache
  keeps_warm,              // goes on reading B when the launch is over
  prepares_on_the_stream,  // works for 30 ms on the stream of launches when it is bound
  prepares_in_a_stream,    // works for 30 ms there, and its launches wait for that
  right_where_exact,       // zeros, but for the values of the exact test
  rounds_a,                // A in fp16
  rounds_a_where_real,     // ... but for the values of the exact test
  rounds_a_in_a_graph,     // ... in launches of a graph
  rounds_a_behind_it,      // ... but the first of them
  drops_small_values,      // leaves out what rounding hides, but for the values of the exact test
  clears_a,                // A becomes zero
  far_behind_c,            // writes 200 lines behind C
  in_the_first_launch,     // works for 30 ms there
  in_a_later_launch,       // works for 60 ms in the fourth
};

constexpr int kProbes = 64;
constexpr int kKept = 257;  // the views of B, and one
constexpr int kMeant = 8;   // launches, in which a test may look at each
constexpr int kThreads = 128;
constexpr std::chrono::milliseconds kSlowCall{1};
constexpr std::int64_t kAtOnceNs = 5'000, kPauseNs = 20'000;

enum class Work { all, half, nothing, copy };
struct State {
  Work work;
  std::int64_t last_ns;
  int since_pause, batch, seen;
  unsigned long long graph;
  int replays, in_graph;  // of that graph; launches of it
  float b[kProbes], c[kProbes];
  bool filled[kKept];
};

__device__ float probe(const DenseView& view) {
  const std::int64_t i = threadIdx.x;
  return static_cast<const float*>(
      view.data)[index_of(view, i * 37 % view.rows, i * 11 % view.cols)];
}

// Of a launch in a CUDA graph.
struct Place {
  unsigned long long graph = 0;
  int at = -1;
};

__global__ void decide_kernel(Cheat cheat, State* state, int slot, DenseView b, DenseView c,
                              Place place) {
  const bool same = __syncthreads_and(probe(b) == state->b[threadIdx.x] &&
                                      probe(c) == state->c[threadIdx.x]) != 0;
  if (threadIdx.x != 0) return;
  const std::int64_t since = now_ns() - state->last_ns;
  Work work = Work::all;
  if (cheat == Cheat::same_probes && same) work = Work::nothing;
  if (cheat == Cheat::kept_for_every_address && state->filled[slot] && ++state->seen > kMeant)
    work = Work::copy;
  if (cheat == Cheat::not_again_at_once && since < kAtOnceNs) work = Work::nothing;
  if (cheat == Cheat::fewer_rows_at_once && since < kAtOnceNs) work = Work::half;
  if (since > kPauseNs) {
    state->batch = max(state->batch, state->since_pause);
    state->since_pause = 0;
  }
  const int at = ++state->since_pause;
  if (cheat == Cheat::last_of_a_batch && state->batch >= 3 && at != 1 && at < state->batch)
    work = Work::nothing;
  if (place.at == 0) {
    if (state->graph != place.graph) state->replays = state->in_graph = 0;
    state->graph = place.graph;
    ++state->replays;
  }
  state->in_graph = max(state->in_graph, place.at + 1);
  const bool calls = cheat == Cheat::with_a_host_function || cheat == Cheat::with_a_slow_one;
  const bool last = place.at + 1 == state->in_graph && !(calls && state->in_graph == 1);
  if ((cheat == Cheat::after_the_first_replay || calls) && place.at >= 0 && state->replays > 1 &&
      !last)
    work = Work::nothing;
  state->work = work;
}

// `longest`: row that is multiplied.
__global__ void product_kernel(const State* state, Csr a, std::int64_t longest, DenseView b,
                               DenseView c, float* kept) {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const Work work = state->work;
  if (work == Work::nothing || at >= (work == Work::half ? a.rows / 2 : a.rows) * c.cols) return;
  const std::int64_t row = at / c.cols, j = at % c.cols;
  if (a.row_ptr[row + 1] - a.row_ptr[row] > longest) return;
  float& to = static_cast<float*>(c.data)[index_of(c, row, j)];
  if (work == Work::copy) {
    to = kept[at];
    return;
  }
  to = kept[at] = element_of_product(a, a.values, b, row, j);
}

__global__ void work_kernel(std::int64_t ns) {
  const std::int64_t start = now_ns();
  while (now_ns() - start < ns) {
  }
}

__global__ void warm_kernel(DenseView b, std::int64_t ns, float* sink) {
  const std::int64_t start = now_ns();
  const auto* const values = static_cast<const volatile float*>(b.data);
  float sum = 0;
  while (now_ns() - start < ns)
    for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < b.rows * b.ld;
         i += gridDim.x * blockDim.x)
      sum += values[i];
  if (sum == 1) *sink = sum;
}

__global__ void note_kernel(State* state, int slot, DenseView b, DenseView c) {
  state->b[threadIdx.x] = probe(b);
  state->c[threadIdx.x] = probe(c);
  if (threadIdx.x != 0) return;
  state->filled[slot] = true;
  state->last_ns = now_ns();
}

std::vector<float> values_of(const CsrMatrix& a, Cheat cheat) {
  std::vector<float> values = a.values;
  if (cheat == Cheat::right_where_exact && !looks_exact(a)) std::ranges::fill(values, 0.0F);
  if (cheat == Cheat::drops_small_values) values = without_small_values(a);
  if (cheat == Cheat::rounds_a || cheat == Cheat::rounds_a_in_a_graph ||
      cheat == Cheat::rounds_a_behind_it ||
      (cheat == Cheat::rounds_a_where_real && !looks_exact(a)))
    for (float& value : values) value = static_cast<float>(round_to(Precision::fp16, value));
  return values;
}

void forget_order(cudaStream_t stream) {
#if CUDART_VERSION >= 13000
  SPMMBENCH_CUDA(cudaStreamUpdateCaptureDependencies(stream, nullptr, nullptr, 0,
                                                     cudaStreamSetCaptureDependencies));
#else
  SPMMBENCH_CUDA(
      cudaStreamUpdateCaptureDependencies(stream, nullptr, 0, cudaStreamSetCaptureDependencies));
#endif
}

struct CheatAndMore {
  Cheat cheat;
  WorkElsewhere elsewhere;
};

class CheatA final : public PlantedGpuA {
 public:
  CheatA(const CsrMatrix& a, const CheatAndMore& kernel, Device& device)
      : PlantedGpuA(a, device),
        elsewhere_(kernel.elsewhere),
        a_(a),
        longest_(longest_of_half(a)),
        cheat_(kernel.cheat),
        changed_values_(device.upload(values_of(a, cheat_))) {
    elsewhere_.prepare();
    if (cheat_ == Cheat::clears_a)
      std::ranges::fill(const_cast<std::vector<float>&>(a.values), 0.0F);
  }
  std::unique_ptr<Plan> bind(const Shape& shape, StageTimer&) override {
    return std::make_unique<CheatPlan>(*this, shape);
  }

 private:
  class CheatPlan final : public Plan {
   public:
    CheatPlan(const CheatA& a, const Shape& shape)
        : a_(a),
          c_bytes_(a.rows_ * shape.n * sizeof(float)),
          state_(a.device_.allocate(sizeof(State))),
          kept_(a.device_.allocate(kKept * c_bytes_)) {
      a.device_.fill_bytes(state_.data(), 0, state_.bytes());
      SPMMBENCH_CUDA(cudaStreamCreateWithFlags(&own_, cudaStreamNonBlocking));
      SPMMBENCH_CUDA(cudaEventCreate(&called_));
      a.elsewhere_.bind(a.a_);
      const bool on_own = a.cheat_ == Cheat::prepares_in_a_stream;
      if (!on_own && a.cheat_ != Cheat::prepares_on_the_stream) return;
      work_kernel<<<1, 1, 0,
                    on_own ? own_ : static_cast<cudaStream_t>(a.device_.stream().handle)>>>(
          std::chrono::nanoseconds(kWork).count());
      SPMMBENCH_CUDA_LAUNCHED();
      SPMMBENCH_CUDA(cudaEventRecord(called_, own_));
    }

    ~CheatPlan() override {
      a_.elsewhere_.destroy();
      SPMMBENCH_CUDA_NOEXCEPT(cudaStreamDestroy(own_));
      SPMMBENCH_CUDA_NOEXCEPT(cudaEventDestroy(called_));
    }
    CheatPlan(const CheatPlan&) = delete;

    void launch(const DenseView& b, const DenseView& c, Stream stream) override {
      const auto queue = static_cast<cudaStream_t>(stream.handle);
      const Cheat cheat = a_.cheat_;
      cudaStreamCaptureStatus status{};
      unsigned long long graph = 0;
      SPMMBENCH_CUDA(cudaStreamGetCaptureInfo(queue, &status, &graph));
      const bool captured = status == cudaStreamCaptureStatusActive;
      if (captured && graph != place_.graph) place_ = {graph, -1};
      if (captured) ++place_.at;
      const bool once = cheat == Cheat::first_of_a_graph || cheat == Cheat::once_for_a_constant_b;
      if (once && captured && place_.at > 0) return;
      if (cheat == Cheat::half_of_a_graph && captured && place_.at % 2 != 0) return;
      if (cheat == Cheat::with_a_host_function)
        SPMMBENCH_CUDA(cudaLaunchHostFunc(
            queue, [](void*) {}, nullptr));
      if (cheat == Cheat::with_a_slow_one)
        SPMMBENCH_CUDA(cudaLaunchHostFunc(
            queue, [](void*) { std::this_thread::sleep_for(kSlowCall); }, nullptr));
      if (cheat == Cheat::prepares_in_a_stream && !captured)
        SPMMBENCH_CUDA(cudaStreamWaitEvent(queue, called_));
      if (cheat == Cheat::in_the_first_launch && launches_ == 0) work_for(kWork);
      if (cheat == Cheat::in_a_later_launch && launches_ == kLaunchThatPrepares)
        work_for(2 * kWork);
      if (cheat == Cheat::persists && !captured) keep_in_l2(a_.device_, b.data, b.bytes());
      if (cheat == Cheat::far_behind_c) {
        constexpr std::int64_t kLines = 200;
        const std::int64_t at = (c.lines() + kLines) * c.ld;
        SPMMBENCH_CUDA(cudaMemsetAsync(static_cast<float*>(c.data) + at, 1, 1, queue));
      }
      if (captured && cheat == Cheat::beside_each_other) forget_order(queue);
      const bool elsewhere = !captured &&
                             launches_++ > kLaunchThatPrepares &&  // when it has been tested
                             (cheat == Cheat::in_a_stream || cheat == Cheat::in_a_stream_after);
      if (elsewhere && cheat == Cheat::in_a_stream_after) {
        SPMMBENCH_CUDA(cudaEventRecord(called_, queue));
        SPMMBENCH_CUDA(cudaStreamWaitEvent(own_, called_));
      }
      multiply(b, c, captured ? place_ : Place{}, elsewhere ? own_ : queue);
      if (cheat == Cheat::keeps_warm && !captured) keep_warm(b, queue);
    }
    PlanReport report() const override {
      a_.elsewhere_.report();
      return {};
    }

   private:
    void multiply(const DenseView& b, const DenseView& c, Place place, cudaStream_t queue) {
      const bool as_given = (a_.cheat_ == Cheat::rounds_a_in_a_graph && place.at < 0) ||
                            (a_.cheat_ == Cheat::rounds_a_behind_it && place.at <= 0);
      const bool shorter = a_.cheat_ == Cheat::long_rows_once && place.at > 0;
      const std::int64_t longest = shorter ? a_.longest_ : std::numeric_limits<std::int64_t>::max();
      Csr csr = a_.csr();
      if (!as_given) csr.values = a_.changed_values_.as<float>();
      const int slot = std::min(
          slots_.try_emplace(b.data, static_cast<int>(slots_.size())).first->second, kKept - 1);
      auto* const state = state_.as<State>();
      auto* const kept = kept_.as<float>() + slot * (c_bytes_ / sizeof(float));
      const unsigned blocks = blocks_of(csr.rows * c.cols, kThreads);
      if (a_.cheat_ == Cheat::starts_early) {
        const EarlyLaunch early(blocks, kThreads, queue, true);
        SPMMBENCH_CUDA(cudaLaunchKernelEx(early.config(), product_kernel,
                                          static_cast<const State*>(state), csr, longest, b, c,
                                          kept));
        return;
      }
      decide_kernel<<<1, kProbes, 0, queue>>>(a_.cheat_, state, slot, b, c, place);
      product_kernel<<<blocks, kThreads, 0, queue>>>(state, csr, longest, b, c, kept);
      note_kernel<<<1, kProbes, 0, queue>>>(state, slot, b, c);
      SPMMBENCH_CUDA_LAUNCHED();
    }
    void keep_warm(const DenseView& b, cudaStream_t queue) {
      constexpr std::int64_t kNs = 1'000'000;  // longer than from one cold launch to the next
      constexpr int kBlocks = 64, kThreadsOfEach = 256;
      SPMMBENCH_CUDA(cudaEventRecord(called_, queue));
      SPMMBENCH_CUDA(cudaStreamWaitEvent(own_, called_));
      warm_kernel<<<kBlocks, kThreadsOfEach, 0, own_>>>(b, kNs, kept_.as<float>());
      SPMMBENCH_CUDA_LAUNCHED();
    }

    const CheatA& a_;
    std::size_t c_bytes_;
    Buffer state_, kept_;
    cudaStream_t own_ = nullptr;
    cudaEvent_t called_ = nullptr;
    std::map<const void*, int> slots_;
    Place place_;
    int launches_ = 0;
  };

  const WorkElsewhere& elsewhere_;
  const CsrMatrix& a_;
  std::int64_t longest_;
  Cheat cheat_;
  Buffer changed_values_;
};

class CheatKernel final : public PlantedGpuKernel<CheatA, CheatAndMore> {
 public:
  CheatKernel(const char* name, Cheat cheat, Elsewhere works)
      : PlantedGpuKernel(name, {cheat, WorkElsewhere(works)}) {
    info_.inspects_b = cheat == Cheat::once_for_a_constant_b;
    info_.prepares_on_device = works == Elsewhere::in_the_exact_test;
  }
  Support supports(const Problem&, const DeviceInfo&) const override {
    what_.elsewhere.supports();
    return Support::yes(0);
  }
};

void add(const char* name, Cheat cheat, Elsewhere works = Elsewhere::nowhere) {
  Registry<Kernel>::instance().add(std::make_unique<CheatKernel>(name, cheat, works));
}

[[maybe_unused]] const bool kRegistered = [] {
  add("none", Cheat::none);
  add("same_probes", Cheat::same_probes);
  add("kept_for_every_address", Cheat::kept_for_every_address);
  add("not_again_at_once", Cheat::not_again_at_once);
  add("fewer_rows_at_once", Cheat::fewer_rows_at_once);
  add("last_of_a_batch", Cheat::last_of_a_batch);
  add("first_of_a_graph", Cheat::first_of_a_graph);
  add("half_of_a_graph", Cheat::half_of_a_graph);
  add("after_the_first_replay", Cheat::after_the_first_replay);
  add("with_a_host_function", Cheat::with_a_host_function);
  add("beside_each_other", Cheat::beside_each_other);
  add("starts_early", Cheat::starts_early);
  add("in_a_stream", Cheat::in_a_stream);
  add("in_a_stream_after", Cheat::in_a_stream_after);
  add("persists", Cheat::persists);
  add("keeps_warm", Cheat::keeps_warm);
  add("prepares_in_a_stream", Cheat::prepares_in_a_stream);
  add("prepares_on_the_stream", Cheat::prepares_on_the_stream);
  add("right_where_exact", Cheat::right_where_exact);
  add("rounds_a", Cheat::rounds_a);
  add("rounds_a_where_real", Cheat::rounds_a_where_real);
  add("rounds_a_in_a_graph", Cheat::rounds_a_in_a_graph);
  add("rounds_a_behind_it", Cheat::rounds_a_behind_it);
  add("drops_small_values", Cheat::drops_small_values);
  add("with_a_slow_one", Cheat::with_a_slow_one);
  add("long_rows_once", Cheat::long_rows_once);
  add("once_for_a_constant_b", Cheat::once_for_a_constant_b);
  add("clears_a", Cheat::clears_a);
  add("far_behind_c", Cheat::far_behind_c);
  add("in_the_first_launch", Cheat::in_the_first_launch);
  add("in_a_later_launch", Cheat::in_a_later_launch);
  add("in_supports", Cheat::none, Elsewhere::in_supports);
  add("in_the_first_preparation", Cheat::none, Elsewhere::in_the_first_preparation);
  add("in_the_second_preparation", Cheat::none, Elsewhere::in_the_second_preparation);
  add("in_bind", Cheat::none, Elsewhere::in_bind);
  add("in_the_exact_test", Cheat::none, Elsewhere::in_the_exact_test);
  add("in_report", Cheat::none, Elsewhere::in_report);
  add("in_a_destructor", Cheat::none, Elsewhere::in_a_destructor);
  return true;
}();

}  // namespace
}  // namespace spmmbench
