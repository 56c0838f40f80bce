#pragma once
// A device as the program and the host code of kernels use it: a CUDA GPU, or the host itself for
// CPU kernels. Implementations are in src/gpu; this header names no CUDA type.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "spmmbench/precision.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench {

enum class DeviceKind { host, cuda };
enum class Layout { row_major, col_major };

// A dense matrix in the memory of some device. Not owning. Element (i, j) is at data[i * ld + j]
// (row major) or data[j * ld + i] (column major). On a GPU `data` and ld * bytes_of(type) are
// multiples of 16, so that vector loads, TMA and bulk copies can be used for every N; on the host,
// of an element. The padding of B holds anything, here NaN; that of C may be overwritten.
struct DenseView {
  void* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t ld = 0;
  Layout layout = Layout::row_major;
  ElementType type = ElementType::f32;
  float scale = 1;  // of B: an element is this times what is stored (is_scaled)
  // Of B, in the same memory: an element is also this times its block's (block_scales.hpp). Null:
  // blocks have no scales.
  const float* block_scales = nullptr;

  std::int64_t lines() const { return layout == Layout::row_major ? rows : cols; }
  std::int64_t line_length() const { return layout == Layout::row_major ? cols : rows; }
  // Elements from one row to the next.
  std::int64_t row_stride() const { return layout == Layout::row_major ? ld : 1; }
  std::size_t bytes() const { return static_cast<std::size_t>(lines() * ld) * bytes_of(type); }
};

// A view without memory: ld rounded up to 16 bytes.
DenseView make_dense_view(std::int64_t rows, std::int64_t cols, Layout layout, ElementType type);

// The same for B, whose rows are gathered. Lines longer than 32 bytes (a sector of the L2 cache)
// are padded to a multiple of 32; without that, sparse products take up to 1.4 times as long. If
// that leaves a line 32 bytes short of a cache line of 128 bytes, it is padded to the full line;
// without that, products take up to 1.3 times as long (docs/decisions/locality.md).
DenseView make_b_view(std::int64_t rows, std::int64_t cols, Layout layout, ElementType type);

// Device work is ordered on one stream. `handle` is the cudaStream_t; null on the host.
struct Stream {
  void* handle = nullptr;
};

struct DeviceInfo {
  DeviceKind kind = DeviceKind::host;
  int index = 0;
  std::string name;
  std::string uuid;                  // empty on the host
  int compute_capability = 0;        // 90 for 9.0; 0 on the host
  int sm_count = 0;                  // threads on the host
  std::size_t l2_bytes = 0;          // last-level cache on the host
  std::size_t memory_bytes = 0;      // total
  std::size_t shared_per_block = 0;  // opt-in maximum
  std::string driver_version, runtime_version, cusparse_version,
      cublas_version;  // empty when absent; the last two also if nothing has asked for them
};

// NVML's values at one moment; null where NVML has none.
struct ClockState {
  std::optional<unsigned> sm_mhz, memory_mhz, temperature_c, power_w;
  std::optional<std::uint64_t> throttle_reasons;  // NVML's bit mask
};

// A failed device call. `device_lost`: the context is unusable (illegal address, launch timeout),
// so nothing more can run on it in this process.
class DeviceError : public std::runtime_error {
 public:
  DeviceError(const std::string& what, bool device_lost)
      : std::runtime_error(what), device_lost_(device_lost) {}
  bool device_lost() const noexcept { return device_lost_; }

 private:
  bool device_lost_;
};

// The device or the host has not enough memory.
class OutOfMemory : public DeviceError {
 public:
  explicit OutOfMemory(const std::string& what) : DeviceError(what, false) {}
};

class Device;

// Owned device memory, 256-byte aligned. Movable. Its destructor frees it; the device outlives it.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device* device, void* data, std::size_t bytes)
      : device_(device), data_(data), bytes_(bytes) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }
  ~Buffer();

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  void swap(Buffer& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

 private:
  Device* device_ = nullptr;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

template <class... Buffers>
std::size_t sum_of_bytes(const Buffers&... buffers) {
  return (std::size_t{0} + ... + buffers.bytes());
}

// Every call throws DeviceError on failure. upload and download wait; fill_bytes only enqueues.
class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;
  virtual Stream stream() const = 0;
  virtual std::size_t free_bytes() const = 0;

  virtual Buffer allocate(std::size_t bytes) = 0;  // uninitialised; 0 bytes gives a null buffer
  virtual void upload(void* device_dst, const void* host_src, std::size_t bytes) = 0;
  virtual void download(void* host_dst, const void* device_src, std::size_t bytes) = 0;
  // What `download` has brought to the host so far, on a device that has memory of its own.
  virtual std::uint64_t bytes_to_host() const { return 0; }
  virtual void fill_bytes(void* device_dst, unsigned char byte, std::size_t bytes) = 0;
  virtual void synchronize() = 0;              // reports errors of earlier launches
  virtual void wait_idle() { synchronize(); }  // of all streams
  // Whether launches on this stream are recorded in a graph rather than run.
  virtual bool is_capturing(Stream /*stream*/) const { return false; }

  // Element (i, j) of `view` = uniform_in(precision, seed, i, j); the padding is NaN.
  virtual void fill_uniform(const DenseView& view, std::uint64_t seed, Precision precision) = 0;
  // Element (i, j) of `view` = lattice.b(i, j); the padding is NaN.
  virtual void fill_lattice(const DenseView& view, const Lattice& lattice) = 0;

  // Enqueues `launch` `count` times back to back. Returns the time between the events around them,
  // in microseconds.
  virtual double time_us(const std::function<void()>& launch, int count) = 0;

  // Records `count` launches once. Every call of the function that is returned replays them back to
  // back and returns the time between the events around them, in microseconds. On a GPU the
  // launches are a CUDA graph, so that kernels shorter than the host's launch overhead can be
  // timed; launches that cannot be captured are enqueued one by one instead. What `launch` refers
  // to must outlive the recording.
  virtual std::function<double()> record(std::function<void()> launch, int count) {
    return [this, launch = std::move(launch), count] { return time_us(launch, count); };
  }
  virtual void flush_cache() = 0;  // evicts the last-level cache
  // Ends the reservation of cache lines that launches have made persist there, since such lines
  // would outlast a flush.
  virtual void unreserve_cache() {}
  // Bytes read plus bytes written of a large copy within the device, per second. Measured once.
  virtual double copy_bytes_per_second() = 0;
  virtual ClockState clocks() = 0;

  template <class T>
  Buffer upload(std::span<const T> host) {
    Buffer buffer = allocate(host.size_bytes());
    if (!host.empty()) upload(buffer.data(), host.data(), host.size_bytes());
    return buffer;
  }
  template <class Container>
  Buffer upload(const Container& host) {
    return upload(std::span<const typename Container::value_type>(host));
  }

 private:
  friend class Buffer;
  virtual void release(void* data) noexcept = 0;
};

inline Buffer::~Buffer() {
  if (data_ != nullptr) device_->release(data_);
}

}  // namespace spmmbench
