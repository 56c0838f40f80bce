#pragma once
// A device that counts what is allocated on it.

#include <algorithm>
#include <unordered_map>

#include "spmmbench/device.hpp"

namespace spmmbench::test {

class CountingDevice final : public Device {
 public:
  explicit CountingDevice(Device& device) : device_(device) {}

  std::size_t held() const { return held_; }  // bytes
  std::size_t peak() const { return peak_; }  // the most that was held

  const DeviceInfo& info() const override { return device_.info(); }
  Stream stream() const override { return device_.stream(); }
  std::size_t free_bytes() const override { return device_.free_bytes(); }
  Buffer allocate(std::size_t bytes) override {
    Buffer inner = device_.allocate(bytes);
    void* const data = inner.data();
    if (data == nullptr) return {};
    held_ += bytes;
    peak_ = std::max(peak_, held_);
    buffers_.emplace(data, std::move(inner));
    return {this, data, bytes};
  }
  using Device::upload;
  void upload(void* device_dst, const void* host_src, std::size_t bytes) override {
    device_.upload(device_dst, host_src, bytes);
  }
  void download(void* host_dst, const void* device_src, std::size_t bytes) override {
    device_.download(host_dst, device_src, bytes);
  }
  void fill_bytes(void* device_dst, unsigned char byte, std::size_t bytes) override {
    device_.fill_bytes(device_dst, byte, bytes);
  }
  void synchronize() override { device_.synchronize(); }
  void fill_uniform(const DenseView& view, std::uint64_t seed, Precision precision) override {
    device_.fill_uniform(view, seed, precision);
  }
  void fill_lattice(const DenseView& view, const Lattice& lattice) override {
    device_.fill_lattice(view, lattice);
  }
  double time_us(const std::function<void()>& launch, int count) override {
    return device_.time_us(launch, count);
  }
  void flush_cache() override { device_.flush_cache(); }
  double copy_bytes_per_second() override { return device_.copy_bytes_per_second(); }
  ClockState clocks() override { return device_.clocks(); }

 private:
  void release(void* data) noexcept override {
    const auto it = buffers_.find(data);
    held_ -= it->second.bytes();
    buffers_.erase(it);
  }

  Device& device_;
  std::unordered_map<void*, Buffer> buffers_;
  std::size_t held_ = 0;
  std::size_t peak_ = 0;
};

}  // namespace spmmbench::test
