// Watcher on a CUDA device: one block polls, another kernel compares what it noted with the ranges.

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <type_traits>
#include <vector>

#include "gpu/cuda_check.hpp"
#include "gpu/element.cuh"
#include "gpu/watcher.hpp"

namespace spmmbench {
namespace {

constexpr int kWarp = 32;
// Each looks at all places. One look takes a read of the L2 cache, so that all together look once
// in some 100 ns: a launch takes a microsecond at least.
constexpr int kWatchingWarps = 8;
constexpr unsigned kMostValues = 4'096;  // that one of them notes of an element
// Looks of a warp: some 20 ms, many times as long as a batch, without the time that the GPU spends
// on other processes.
constexpr int kMostLooks = 50'000;
// Until it has begun: some 20 us, and longer where other processes have the GPU, whose slices of
// some ms each come first. It ends the wait alone where this stream never runs beside others.
constexpr std::chrono::milliseconds kMostWait{2'000};

struct WatchedPlaces {
  unsigned count = 0;
  std::array<const void*, kMostWatched> at{};
};

// Lines of values, one for each warp and place, that lie across one another.
struct Notes {
  double* values;
  unsigned* counts;  // of each line
  int* complete;     // of each warp: whether it looked until the end; memory of the host

  __device__ double& value(unsigned line, unsigned i) const {
    return values[static_cast<std::size_t>(i) * (kWatchingWarps * kMostWatched) + line];
  }
};

template <class T>
__global__ void __launch_bounds__(kWatchingWarps* kWarp)
    watch_kernel(const __grid_constant__ WatchedPlaces places, Notes notes, volatile int* begun,
                 const volatile int* ended, int ticket) {
  using Bits = std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
  const unsigned warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const unsigned line = warp * kMostWatched + lane;
  const bool looks = lane < places.count;
  const volatile Bits* const place = looks ? static_cast<const Bits*>(places.at[lane]) : nullptr;
  if (threadIdx.x == 0) *begun = ticket;
  unsigned count = 0;
  Bits last = 0;
  bool over = false;
  for (int i = 0; i < kMostLooks && !over; ++i) {
    over = *ended == ticket;  // C is read once more behind that
    if (!looks) continue;
    const Bits bits = *place;
    if (count > 0 && bits == last) continue;
    last = bits;
    T value;
    memcpy(&value, &bits, sizeof value);
    if (count < kMostValues) notes.value(line, count) = to_double(value);
    ++count;
  }
  if (looks) notes.counts[line] = count;
  __syncwarp();
  const bool is_full = __any_sync(~0U, count > kMostValues) != 0;
  if (lane == 0) notes.complete[warp] = over && !is_full ? 1 : 0;
}

__global__ void end_kernel(volatile int* ended, int ticket) { *ended = ticket; }

// A block for each launch, and a warp for each place.
__global__ void match_kernel(Notes notes, const ValueRange* ranges, unsigned char* found) {
  const unsigned place = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const std::size_t at = static_cast<std::size_t>(blockIdx.x) * (blockDim.x / kWarp) + place;
  const ValueRange range = ranges[at];
  bool is_found = range.low > range.high;
  for (unsigned warp = 0; warp < kWatchingWarps; ++warp) {
    const unsigned line = warp * kMostWatched + place;
    const unsigned count = min(notes.counts[line], kMostValues);
    for (unsigned i = lane; i < count; i += kWarp) {
      const double value = notes.value(line, i);
      is_found |= range.low <= value && value <= range.high;
    }
  }
  is_found = __any_sync(~0U, is_found);
  if (lane == 0) found[at] = is_found ? 1 : 0;
}

struct FreeHost {
  void operator()(void* memory) const { SPMMBENCH_CUDA_NOEXCEPT(cudaFreeHost(memory)); }
};
struct DestroyStream {
  void operator()(CUstream_st* stream) const { SPMMBENCH_CUDA_NOEXCEPT(cudaStreamDestroy(stream)); }
};

// What the watchers of one thread and device share, since a case has no time to make it anew.
struct Shared {
  std::unique_ptr<CUstream_st, DestroyStream> stream;
  // A ticket, whether warps looked until the end, and behind both ranges and answers.
  std::unique_ptr<unsigned char, FreeHost> memory;
  std::size_t bytes = 0;
  int ticket = 0;
  std::set<ElementType> known;  // whose kernels have run

  void reserve(std::size_t wanted) {
    if (wanted <= bytes) return;
    void* made = nullptr;
    SPMMBENCH_CUDA(cudaHostAlloc(&made, wanted, cudaHostAllocMapped | cudaHostAllocPortable));
    memory.reset(static_cast<unsigned char*>(made));
    bytes = wanted;
    *begun() = ticket;
  }
  volatile int* begun() const { return reinterpret_cast<volatile int*>(memory.get()); }
  int* complete() const {
    constexpr std::size_t kBehindTicket = 64;  // bytes: a line of its own
    return reinterpret_cast<int*>(memory.get() + kBehindTicket);
  }
};

Shared& shared_of(const Device& device) {
  thread_local std::map<int, Shared> all;
  Shared& shared = all[device.info().index];
  if (shared.stream == nullptr) {
    cudaStream_t stream = nullptr;
    SPMMBENCH_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    shared.stream.reset(stream);
    constexpr std::size_t kUsual = 64 << 10;  // of 256 launches and 8 places
    shared.reserve(kUsual);
  }
  return shared;
}

class CudaWatcher final : public Watcher {
 public:
  explicit CudaWatcher(Device& device)
      : device_(device),
        shared_(shared_of(device)),
        values_(device.allocate(sizeof(double) * kLines * kMostValues)),
        state_(device.allocate(sizeof(int) * (kLines + 1))) {
    device.fill_bytes(state_.data(), 0, state_.bytes());
    device.synchronize();  // what used this memory before is done as well
  }
  ~CudaWatcher() override { SPMMBENCH_CUDA_NOEXCEPT(cudaStreamSynchronize(own())); }
  CudaWatcher(const CudaWatcher&) = delete;

  bool begin(ElementType type, std::span<const void* const> places) override {
    if (shared_.known.insert(type).second) rehearse(type);
    WatchedPlaces watched;
    watched.count = static_cast<unsigned>(places.size());
    std::ranges::copy(places, watched.at.begin());
    count_ = places.size();
    ticket_ = ++shared_.ticket;
    watch(type, watched);
    const auto start = std::chrono::steady_clock::now();
    const auto has_begun = [&] { return *shared_.begun() == ticket_; };
    while (!has_begun())  // asked once more behind the last look at the clock
      if (std::chrono::steady_clock::now() - start > kMostWait) return has_begun();
    return true;
  }

  void end() override {
    end_kernel<<<1, 1, 0, static_cast<cudaStream_t>(device_.stream().handle)>>>(ended(), ticket_);
    SPMMBENCH_CUDA_LAUNCHED();
  }

  std::vector<bool> found(std::span<const ValueRange> ranges) override {
    SPMMBENCH_CUDA(cudaStreamSynchronize(own()));
    const int* const complete = shared_.complete();
    if (std::count(complete, complete + kWatchingWarps, 1) != kWatchingWarps) return {};
    const std::size_t behind = kTicketBytes + ranges.size() * sizeof(ValueRange);
    shared_.reserve(behind + ranges.size());
    auto* const asked = reinterpret_cast<ValueRange*>(shared_.memory.get() + kTicketBytes);
    const unsigned char* const answers = shared_.memory.get() + behind;
    std::ranges::copy(ranges, asked);
    if (!ranges.empty()) {
      match_kernel<<<static_cast<unsigned>(ranges.size() / count_),
                     static_cast<unsigned>(count_ * kWarp), 0, own()>>>(
          notes(), asked, shared_.memory.get() + behind);
      SPMMBENCH_CUDA_LAUNCHED();
    }
    SPMMBENCH_CUDA(cudaStreamSynchronize(own()));
    return std::vector<bool>(answers, answers + ranges.size());
  }

 private:
  static constexpr std::size_t kLines = kWatchingWarps * kMostWatched;
  static constexpr std::size_t kTicketBytes = 128;  // and of what is complete

  void watch(ElementType type, const WatchedPlaces& places) {
    visit_element_type<sizeof(__half), sizeof(double)>(type, [&](auto* tag) {
      using T = std::remove_pointer_t<decltype(tag)>;
      watch_kernel<T><<<1, kWatchingWarps * kWarp, 0, own()>>>(places, notes(), shared_.begun(),
                                                               ended(), ticket_);
    });
    SPMMBENCH_CUDA_LAUNCHED();
  }
  // The first launch of a kernel may load its code, which waits for all kernels that run.
  void rehearse(ElementType type) {
    ticket_ = ++shared_.ticket;
    end();
    device_.synchronize();
    watch(type, {});
    count_ = 1;
    found(std::vector<ValueRange>(1));
  }

  cudaStream_t own() const { return shared_.stream.get(); }
  Notes notes() const { return {values_.as<double>(), state_.as<unsigned>(), shared_.complete()}; }
  int* ended() const { return state_.as<int>() + kLines; }

  Device& device_;
  Shared& shared_;
  Buffer values_, state_;
  std::size_t count_ = 0;
  int ticket_ = 0;
};

}  // namespace

std::unique_ptr<Watcher> make_cuda_watcher(Device& device) {
  try {
    return std::make_unique<CudaWatcher>(device);
  } catch (const OutOfMemory&) {
    return nullptr;
  }
}

}  // namespace spmmbench
