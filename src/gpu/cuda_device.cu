// A CUDA GPU: what it is, its memory, its one stream, its clock.

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>

#include "gpu/backend.hpp"
#include "gpu/batch_timer.hpp"
#include "gpu/clear_memory.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/element.cuh"
#include "gpu/memory_pool.hpp"
#include "gpu/nvml.hpp"
#include "gpu/ordered_device.hpp"
#include "gpu/told_to_host.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench {
namespace {

constexpr int kFillThreads = 256;

struct UniformValue {
  std::uint64_t seed;
  Precision precision;
  __device__ double operator()(std::int64_t i, std::int64_t j) const {
    return uniform_in(precision, seed, i, j);
  }
};
struct LatticeValue {
  Lattice lattice;
  __device__ double operator()(std::int64_t i, std::int64_t j) const { return lattice.b(i, j); }
};

template <class T, class Value>
__global__ void fill_kernel(T* data, std::int64_t lines, std::int64_t line_length, std::int64_t ld,
                            bool row_major, Value value_at) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       at < lines * ld; at += step) {
    const std::int64_t line = at / ld;
    const std::int64_t position = at % ld;
    double value = std::numeric_limits<double>::quiet_NaN();
    if (position < line_length) {
      value = row_major ? value_at(line, position) : value_at(position, line);
    }
    data[at] = from_double<T>(value);
  }
}

__global__ void write_kernel(uint4* data, std::size_t count) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step)
    data[i] = make_uint4(1U, static_cast<unsigned>(i), 2U, 3U);
}

// The store never happens (word 0 is 1 everywhere), which the compiler cannot know.
__global__ void read_kernel(const uint4* data, std::size_t count, unsigned* sink) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  unsigned all = ~0U;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step)
    all &= data[i].x;
  if (all == 0U) *sink = 1U;
}

// Occupies the stream for `cycles` so that the host can enqueue launches ahead of the device.
__global__ void hold_kernel(std::int64_t cycles) {
  const std::int64_t start = clock64();
  while (clock64() - start < cycles) {
  }
}

// The same until the host has written a ticket, at most for `cycles`.
__global__ void hold_for_ticket(const volatile std::int64_t* released, std::int64_t ticket,
                                std::int64_t cycles) {
  const std::int64_t start = clock64();
  while (*released < ticket && clock64() - start < cycles) {
  }
}

std::string format_version(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string format_uuid(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

DeviceInfo query_device(int index) {
  cudaDeviceProp properties{};
  SPMMBENCH_CUDA(cudaGetDeviceProperties(&properties, index));
  DeviceInfo info;
  info.kind = DeviceKind::cuda;
  info.index = index;
  info.name = properties.name;
  info.uuid = format_uuid(properties.uuid);
  info.compute_capability = properties.major * 10 + properties.minor;
  info.sm_count = properties.multiProcessorCount;
  info.l2_bytes = static_cast<std::size_t>(properties.l2CacheSize);
  info.memory_bytes = properties.totalGlobalMem;
  info.shared_per_block = properties.sharedMemPerBlockOptin;
  int version = 0;
  SPMMBENCH_CUDA(cudaRuntimeGetVersion(&version));
  info.runtime_version = format_version(version);
  info.driver_version = nvml_driver_version();
  if (info.driver_version.empty()) {
    SPMMBENCH_CUDA(cudaDriverGetVersion(&version));
    info.driver_version = "CUDA " + format_version(version);
  }
  return info;
}

class CudaDevice final : public Device, public BatchTimer {
 public:
  CudaDevice(int index, const std::function<bool()>& in_order)
      : info_(query_device(index)), in_order_(in_order) {
    SPMMBENCH_CUDA(cudaSetDevice(index));
    // This stream is ordered with the legacy default stream, so library calls that use that one
    // stay correct. It costs nothing while none does.
    SPMMBENCH_CUDA(cudaStreamCreate(&stream_));
    SPMMBENCH_CUDA(cudaEventCreate(&start_));
    SPMMBENCH_CUDA(cudaEventCreate(&stop_));
    SPMMBENCH_CUDA(cudaHostAlloc(&released_, sizeof *released_, cudaHostAllocMapped));
    *released_ = 0;
    SPMMBENCH_CUDA(cudaHostAlloc(&staging_, kStagedBytes, cudaHostAllocDefault));
    SPMMBENCH_CUDA_NOEXCEPT(cudaDeviceGetLimit(&reserved_cache_, cudaLimitPersistingL2CacheSize));
    const ToldToHost made_before_the_first_build(*this);
  }

  ~CudaDevice() override {
    SPMMBENCH_CUDA_NOEXCEPT(cudaFreeHost(staging_));
    SPMMBENCH_CUDA_NOEXCEPT(cudaFreeHost(released_));
    SPMMBENCH_CUDA_NOEXCEPT(cudaEventDestroy(stop_));
    SPMMBENCH_CUDA_NOEXCEPT(cudaEventDestroy(start_));
    SPMMBENCH_CUDA_NOEXCEPT(cudaStreamDestroy(stream_));
  }

  const DeviceInfo& info() const override { return info_; }
  Stream stream() const override { return {stream_}; }

  std::size_t free_bytes() const override {
    std::size_t free = 0;
    std::size_t total = 0;
    SPMMBENCH_CUDA(cudaMemGetInfo(&free, &total));
    return free + pool_.kept_bytes();
  }

  Buffer allocate(std::size_t bytes) override {
    if (bytes == 0) return {};
    const MemoryPool::Block block = pool_.allocate(bytes);
    if (block.data == nullptr)
      throw OutOfMemory(
          fmt::format("out of device memory: wanted {} bytes, {} free", bytes, free_bytes()));
    // As cudaFree would have when the block was freed.
    if (block.in_use && !in_order_()) wait_idle();
    return {this, block.data, bytes};
  }

  using Device::upload;
  void upload(void* device_dst, const void* host_src, std::size_t bytes) override {
    copy(device_dst, host_src, bytes, cudaMemcpyHostToDevice);
    synchronize();
  }
  void download(void* host_dst, const void* device_src, std::size_t bytes) override {
    if (bytes <= kStagedBytes) {
      const std::scoped_lock lock(staging_mutex_);
      copy(staging_, device_src, bytes, cudaMemcpyDeviceToHost);
      synchronize();
      std::memcpy(host_dst, staging_, bytes);
    } else {
      copy(host_dst, device_src, bytes, cudaMemcpyDeviceToHost);
      synchronize();
    }
    bytes_to_host_ += bytes;
  }
  std::uint64_t bytes_to_host() const override { return bytes_to_host_; }
  void count_bytes_to_host(std::uint64_t bytes) { bytes_to_host_ += bytes; }
  MaybeClear allocate_maybe_clear(std::size_t bytes) {
    Buffer kept = in_order_() ? clear_.take(bytes) : Buffer{};
    if (kept.data() != nullptr) return {std::move(kept), true};
    return {allocate(ClearMemory::size_for(bytes)), false};
  }
  void keep_clear(Buffer memory) { clear_.keep(std::move(memory)); }
  void fill_bytes(void* device_dst, unsigned char byte, std::size_t bytes) override {
    if (bytes != 0) SPMMBENCH_CUDA(cudaMemsetAsync(device_dst, byte, bytes, stream_));
  }
  void synchronize() override { SPMMBENCH_CUDA(cudaStreamSynchronize(stream_)); }
  void wait_idle() override {
    pool_.wait_for_freed([] { SPMMBENCH_CUDA(cudaDeviceSynchronize()); });
  }
  bool is_capturing(Stream stream) const override {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaError_t error =
        cudaStreamIsCapturing(static_cast<cudaStream_t>(stream.handle), &status);
    // The answer for the default stream while another stream is captured that waits for it.
    const bool implicit = error == cudaErrorStreamCaptureImplicit;
    if (implicit) (void)cudaGetLastError();
    else SPMMBENCH_CUDA(error);
    return implicit || status != cudaStreamCaptureStatusNone;
  }

  void fill_uniform(const DenseView& view, std::uint64_t seed, Precision precision) override {
    fill(view, UniformValue{seed, precision});
  }
  void fill_lattice(const DenseView& view, const Lattice& lattice) override {
    fill(view, LatticeValue{lattice});
  }

  double time_us(const std::function<void()>& launch, int count) override {
    return time_beside_us(launch, count, [] {});
  }
  double time_beside_us(const std::function<void()>& launch, int count,
                        const std::function<void()>& meanwhile) {
    return between_events(
        [&] {
          for (int i = 0; i < count; ++i) launch();
        },
        count, meanwhile);
  }

  double batch_us(const std::function<void()>& launch, int count, bool in_graph) override {
    std::function<void()> batch;
    if (in_graph) batch = cuda_batch(launch, count, *this);
    if (!batch)
      batch = [&] {
        for (int i = 0; i < count; ++i) launch();
      };
    {
      const Held held(*this);
      SPMMBENCH_CUDA(cudaEventRecord(start_, stream_));
      batch();
      SPMMBENCH_CUDA(cudaEventRecord(stop_, stream_));
    }
    batch = nullptr;  // a graph that runs is freed when it ends, and the host has time meanwhile
    return time_between_events_us();
  }

  std::function<double()> record(std::function<void()> launch, int count) override {
    const std::shared_ptr<Replay> replay = cuda_record(launch, count, GraphKind::any, *this);
    if (!replay) return Device::record(std::move(launch), count);
    return [replay, count] { return replay->first(count); };
  }
  void flush_cache() override {
    // Reading evicts as well as writing does and leaves clean lines, so that the timed launch does
    // not pay for writing the flush's own data back.
    if (flush_buffer_.data() == nullptr) {
      const std::size_t bytes = std::max<std::size_t>(2 * info_.l2_bytes, 32U << 20);
      flush_buffer_ = allocate(bytes);
      write_kernel<<<blocks_for(bytes / sizeof(uint4)), kFillThreads, 0, stream_>>>(
          flush_buffer_.as<uint4>(), bytes / sizeof(uint4));
      SPMMBENCH_CUDA_LAUNCHED();
    }
    cuda_clear_shared(*this);
    const std::size_t count = flush_buffer_.bytes() / sizeof(uint4);
    read_kernel<<<blocks_for(count), kFillThreads, 0, stream_>>>(flush_buffer_.as<uint4>(), count,
                                                                 flush_buffer_.as<unsigned>());
    SPMMBENCH_CUDA_LAUNCHED();
  }

  void unreserve_cache() override {
    // Refused where there is no such share, as on a MIG slice.
    std::size_t share = reserved_cache_;
    bool done = cudaDeviceGetLimit(&share, cudaLimitPersistingL2CacheSize) == cudaSuccess;
    if (share != reserved_cache_)
      done &= cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, reserved_cache_) == cudaSuccess;
    done &= cudaCtxResetPersistingL2Cache() == cudaSuccess;
    constexpr cudaStreamAttrValue kNoWindow{};
    done &=
        cudaStreamSetAttribute(static_cast<cudaStream_t>(stream().handle),
                               cudaStreamAttributeAccessPolicyWindow, &kNoWindow) == cudaSuccess;
    if (!done) (void)cudaGetLastError();
  }

  double copy_bytes_per_second() override {
    if (copy_bytes_per_second_ == 0) copy_bytes_per_second_ = measure_copy();
    return copy_bytes_per_second_;
  }

  ClockState clocks() override { return nvml_clock_state(info_.uuid); }

 private:
  void release(void* data) noexcept override { pool_.release(data); }

  static void* take(std::size_t bytes) {
    void* data = nullptr;
    const cudaError_t error = cudaMalloc(&data, bytes);
    if (error == cudaSuccess) return data;
    if (error != cudaErrorMemoryAllocation) SPMMBENCH_CUDA(error);
    (void)cudaGetLastError();
    return nullptr;
  }
  // A garbage collector may free a plan while somebody captures a CUDA graph, which a plain
  // cudaFree would end.
  static void give(void* data) noexcept {
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    SPMMBENCH_CUDA_NOEXCEPT(cudaThreadExchangeStreamCaptureMode(&mode));
    SPMMBENCH_CUDA_NOEXCEPT(cudaFree(data));
    SPMMBENCH_CUDA_NOEXCEPT(cudaThreadExchangeStreamCaptureMode(&mode));
  }

  void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    if (bytes != 0) SPMMBENCH_CUDA(cudaMemcpyAsync(to, from, bytes, kind, stream_));
  }

  // The padding is NaN.
  template <class Value>
  void fill(const DenseView& view, const Value& value_at) {
    const std::int64_t elements = view.lines() * view.ld;
    if (elements == 0) return;
    visit_every_element_type(view.type, [&](auto* tag) {
      using T = std::remove_pointer_t<decltype(tag)>;
      fill_kernel<<<blocks_for(elements), kFillThreads, 0, stream_>>>(
          static_cast<T*>(view.data), view.lines(), view.line_length(), view.ld,
          view.layout == Layout::row_major, value_at);
    });
    SPMMBENCH_CUDA_LAUNCHED();
  }

  int blocks_for(std::size_t elements) const {
    constexpr std::size_t kBlocksPerSm = 16;
    return static_cast<int>(
        std::min((elements + kFillThreads - 1) / kFillThreads, kBlocksPerSm * info_.sm_count));
  }

  // Holds the stream while it lives, or for this many cycles: a launch that waits for the device
  // may not wait for ever.
  class Held {
   public:
    explicit Held(CudaDevice& device, std::int64_t most_cycles = kMaxHoldCycles) : device_(device) {
      hold_for_ticket<<<1, 1, 0, device.stream_>>>(device.released_, ++device.ticket_, most_cycles);
      SPMMBENCH_CUDA_LAUNCHED();
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held() { *const_cast<volatile std::int64_t*>(device_.released_) = device_.ticket_; }

   private:
    CudaDevice& device_;
  };

  static constexpr std::size_t kStagedBytes = 64 << 10;      // of counts, which are a few kilobytes
  static constexpr std::int64_t kMaxHoldCycles = 1'000'000;  // about half a millisecond

  // Time between events around what `enqueue` puts on the stream, which is `launches` kernels or
  // so.
  double between_events(const std::function<void()>& enqueue, int launches,
                        const std::function<void()>& meanwhile) {
    // Without a head start the host's own enqueueing (several microseconds a launch) would be part
    // of the time of every kernel shorter than that. Many launches are released when the last is
    // enqueued. One, which may be a graph of many, is held for a time that is always the same.
    constexpr std::int64_t kHoldCyclesPerLaunch = 20'000;
    const std::int64_t cycles = std::min(launches * kHoldCyclesPerLaunch, kMaxHoldCycles);
    {
      std::optional<Held> held;
      if (launches > 1) held.emplace(*this, cycles);
      else hold_kernel<<<1, 1, 0, stream_>>>(cycles);
      SPMMBENCH_CUDA_LAUNCHED();
      SPMMBENCH_CUDA(cudaEventRecord(start_, stream_));
      enqueue();
      SPMMBENCH_CUDA(cudaEventRecord(stop_, stream_));
    }
    meanwhile();
    return time_between_events_us();
  }

  double time_between_events_us() {
    SPMMBENCH_CUDA(cudaEventSynchronize(stop_));
    SPMMBENCH_CUDA(cudaGetLastError());
    float milliseconds = 0;
    SPMMBENCH_CUDA(cudaEventElapsedTime(&milliseconds, start_, stop_));
    return milliseconds * 1e3;
  }

  double measure_copy() {
    constexpr std::size_t kCopyBytes = std::size_t{1} << 30;
    constexpr int kRepetitions = 9;
    const std::size_t bytes = std::min(kCopyBytes, free_bytes() / 4);
    const Buffer from = allocate(bytes);
    const Buffer to = allocate(bytes);
    fill_bytes(from.data(), 0x3F, bytes);
    const auto once = [&] { copy(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice); };
    once();
    std::array<double, kRepetitions> us{};
    for (double& sample : us) sample = time_us(once, 1);
    std::nth_element(us.begin(), us.begin() + kRepetitions / 2, us.end());
    return 2.0 * static_cast<double>(bytes) / (us[kRepetitions / 2] * 1e-6);
  }

  DeviceInfo info_;
  std::function<bool()> in_order_;
  MemoryPool pool_{take, give};  // before all buffers of this object
  cudaStream_t stream_ = nullptr;
  cudaEvent_t start_ = nullptr;
  cudaEvent_t stop_ = nullptr;
  std::int64_t* released_ = nullptr;  // the last ticket whose launches are all enqueued; the host's
  std::int64_t ticket_ = 0;
  void* staging_ = nullptr;  // pinned, so that the driver makes no second copy of what is small
  std::mutex staging_mutex_;
  Buffer flush_buffer_;
  ClearMemory clear_;
  std::size_t reserved_cache_ = 0;  // for lines that persist, as the driver has it
  std::atomic<std::uint64_t> bytes_to_host_ = 0;
  double copy_bytes_per_second_ = 0;
};

}  // namespace

double cuda_time_beside_us(const std::function<void()>& launch, int count,
                           const std::function<void()>& meanwhile, Device& device) {
  if (auto* const gpu = dynamic_cast<CudaDevice*>(&device))
    return gpu->time_beside_us(launch, count, meanwhile);
  const double us = device.time_us(launch, count);
  meanwhile();
  return us;
}

void count_bytes_to_host(Device& device, std::uint64_t bytes) {
  if (auto* const gpu = dynamic_cast<CudaDevice*>(&device)) gpu->count_bytes_to_host(bytes);
}

MaybeClear allocate_maybe_clear(Device& device, std::size_t bytes) {
  if (auto* const gpu = dynamic_cast<CudaDevice*>(&device)) return gpu->allocate_maybe_clear(bytes);
  return {device.allocate(bytes), false};
}

void keep_clear(Device& device, Buffer memory) noexcept {
  if (auto* const gpu = dynamic_cast<CudaDevice*>(&device)) gpu->keep_clear(std::move(memory));
}

CudaProbe probe_cuda() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) (void)cudaGetLastError();
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) return {{}, "no CUDA driver"};
  if (error == cudaErrorInsufficientDriver)
    return {{},
            fmt::format("the CUDA driver (for {}) is older than this program's runtime",
                        format_version(driver))};
  if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0))
    return {{}, "no CUDA device"};
  if (error != cudaSuccess) return {{}, cudaGetErrorString(error)};
  CudaProbe probe;
  for (int index = 0; index < count; ++index) probe.devices.push_back(query_device(index));
  return probe;
}

int current_cuda_device() {
  int index = 0;
  SPMMBENCH_CUDA_NOEXCEPT(cudaGetDevice(&index));
  return index;
}

void end_cuda_context(int index) noexcept {
  SPMMBENCH_CUDA_NOEXCEPT(cudaSetDevice(index));
  SPMMBENCH_CUDA_NOEXCEPT(cudaDeviceReset());
}

std::unique_ptr<Device> open_cuda_device(int index) {
  return open_cuda_device(index, [] { return false; });
}

std::unique_ptr<Device> open_cuda_device(int index, const std::function<bool()>& in_order) {
  const CudaProbe probe = probe_cuda();
  if (probe.devices.empty()) throw DeviceError(probe.reason, false);
  if (index < 0 || index >= static_cast<int>(probe.devices.size()))
    throw DeviceError(fmt::format("CUDA device {}: there are {}", index, probe.devices.size()),
                      false);
  return std::make_unique<CudaDevice>(index, in_order);
}

}  // namespace spmmbench
