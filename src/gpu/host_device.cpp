// The host as a device for CPU kernels: buffers are host memory, the stream is the calling thread.

#include <fmt/format.h>
#include <omp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>

#include "core/parse_number.hpp"
#include "gpu/backend.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench {
namespace {

constexpr std::size_t kAlignment = 256;
// Buffers of at least one huge page lie on such pages, so that neither faults nor translations of
// addresses take part in what is timed.
constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::string processor_name() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "CPU";
}

std::size_t page_count_bytes(int name) {
  return static_cast<std::size_t>(sysconf(name)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// SPMMBENCH_CACHE_MIB, where it is set. Virtual machines may hide the cache sizes; the fallback is
// larger than most last-level caches per socket, so that a flush still flushes.
std::size_t last_level_cache_bytes() {
  if (const char* const given = std::getenv("SPMMBENCH_CACHE_MIB"); given != nullptr) {
    const std::uint32_t mib = parse_number<std::uint32_t>(given).value_or(0);
    if (mib == 0)
      throw Error(fmt::format("SPMMBENCH_CACHE_MIB={}: expected an integer from 1, in MiB", given));
    return std::size_t{mib} << 20;
  }
  for (const int name : {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE})
    if (const long bytes = sysconf(name); bytes > 0) return static_cast<std::size_t>(bytes);
  return std::size_t{64} << 20;
}

DeviceInfo query_host() {
  DeviceInfo info;
  info.kind = DeviceKind::host;
  info.name = processor_name();
  info.sm_count = omp_get_max_threads();
  info.l2_bytes = last_level_cache_bytes();
  info.memory_bytes = page_count_bytes(_SC_PHYS_PAGES);
  return info;
}

class HostDevice final : public Device {
 public:
  explicit HostDevice(HostMemory* left) : left_(left) {}

  const DeviceInfo& info() const override { return info_; }
  Stream stream() const override { return {}; }
  std::size_t free_bytes() const override { return left_(); }

  Buffer allocate(std::size_t bytes) override {
    if (bytes == 0) return {};
    const std::size_t alignment = bytes < kHugePage ? kAlignment : kHugePage;
    const std::size_t padded = (bytes + alignment - 1) / alignment * alignment;
    // The system promises more memory than there is, and kills the process that then uses it. Less
    // than a huge page is not worth asking how much there is.
    const bool is_left = bytes < kHugePage || bytes <= free_bytes();
    void* data = is_left && padded >= bytes ? std::aligned_alloc(alignment, padded) : nullptr;
    if (data == nullptr)
      throw OutOfMemory(
          fmt::format("out of host memory: wanted {} bytes, {} free", bytes, free_bytes()));
    if (alignment == kHugePage) madvise(data, padded, MADV_HUGEPAGE);  // the system may refuse
    return {this, data, bytes};
  }

  using Device::upload;
  void upload(void* device_dst, const void* host_src, std::size_t bytes) override {
    if (bytes != 0) std::memcpy(device_dst, host_src, bytes);
  }
  void download(void* host_dst, const void* device_src, std::size_t bytes) override {
    upload(host_dst, device_src, bytes);
  }
  void fill_bytes(void* device_dst, unsigned char byte, std::size_t bytes) override {
    if (bytes != 0) std::memset(device_dst, byte, bytes);
  }
  void synchronize() override {}

  void fill_uniform(const DenseView& view, std::uint64_t seed, Precision precision) override {
    fill(view, [=](std::int64_t i, std::int64_t j) { return uniform_in(precision, seed, i, j); });
  }
  void fill_lattice(const DenseView& view, const Lattice& lattice) override {
    fill(view, [=](std::int64_t i, std::int64_t j) { return lattice.b(i, j); });
  }

  double time_us(const std::function<void()>& launch, int count) override {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) launch();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
        .count();
  }

  void flush_cache() override {
    if (flush_buffer_.data() == nullptr) flush_buffer_ = allocate(2 * info_.l2_bytes);
    ++flush_byte_;
    const auto bytes = static_cast<std::int64_t>(flush_buffer_.bytes());
    auto* data = flush_buffer_.as<unsigned char>();
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < bytes; ++i) data[i] = flush_byte_;
  }

  double copy_bytes_per_second() override {
    if (copy_bytes_per_second_ == 0) copy_bytes_per_second_ = measure_copy();
    return copy_bytes_per_second_;
  }

  ClockState clocks() override { return {}; }

 private:
  void release(void* data) noexcept override { std::free(data); }

  // Element (i, j) = value(i, j); the padding is NaN.
  template <class Value>
  static void fill(const DenseView& view, const Value& value) {
    visit_element(view.type, [&](auto type) {
      using Stored = decltype(type);
      auto* const data = static_cast<typename Stored::Bits*>(view.data);
      const bool row_major = view.layout == Layout::row_major;
      const std::int64_t length = view.line_length();
#pragma omp parallel for schedule(static)
      for (std::int64_t line = 0; line < view.lines(); ++line)
        for (std::int64_t position = 0; position < view.ld; ++position) {
          double element = std::numeric_limits<double>::quiet_NaN();
          if (position < length)
            element = row_major ? value(line, position) : value(position, line);
          data[line * view.ld + position] =
              type.encode(static_cast<typename Stored::Value>(element));
        }
    });
  }

  double measure_copy() {
    constexpr int kRepetitions = 5;
    constexpr std::size_t kMaxBytes = std::size_t{256} << 20;
    const std::size_t bytes = std::min({4 * info_.l2_bytes, kMaxBytes, free_bytes() / 4});
    const auto elements = static_cast<std::int64_t>(bytes / sizeof(double));
    const Buffer from = allocate(bytes);
    const Buffer to = allocate(bytes);
    fill_bytes(from.data(), 0x3F, bytes);
    fill_bytes(to.data(), 0x3F, bytes);
    const auto copy = [&] {
      const auto* source = from.as<double>();
      auto* target = to.as<double>();
#pragma omp parallel for schedule(static)
      for (std::int64_t i = 0; i < elements; ++i) target[i] = source[i];
    };
    copy();
    std::array<double, kRepetitions> us{};
    for (double& sample : us) sample = time_us(copy, 1);
    std::nth_element(us.begin(), us.begin() + kRepetitions / 2, us.end());
    return 2.0 * static_cast<double>(bytes) / (us[kRepetitions / 2] * 1e-6);
  }

  HostMemory* left_;
  DeviceInfo info_ = query_host();
  Buffer flush_buffer_;
  unsigned char flush_byte_ = 0;
  double copy_bytes_per_second_ = 0;
};

}  // namespace

std::unique_ptr<Device> open_host_device(HostMemory* left) {
  return std::make_unique<HostDevice>(left);
}

}  // namespace spmmbench
