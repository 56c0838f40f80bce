#pragma once
// A device in host memory whose launches take the time they are told to.

#include <cstdlib>
#include <cstring>
#include <vector>

#include "spmmbench/device.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench {

class FakeDevice : public Device {
 public:
  DeviceInfo device_info;
  std::vector<double> launch_us = {10};  // of successive launches; the last repeats
  double now_s = 0;                      // advanced by every timed launch
  std::size_t launches = 0, flushes = 0;
  bool flushed_since_launch = false;
  std::vector<bool> cold;  // per time_us call: was the cache flushed before it

  const DeviceInfo& info() const override { return device_info; }
  Stream stream() const override { return {}; }
  std::size_t free_bytes() const override { return std::size_t{1} << 30; }
  Buffer allocate(std::size_t bytes) override {
    return {this, std::aligned_alloc(256, (bytes + 255) / 256 * 256 + 256), bytes};
  }
  void upload(void* dst, const void* src, std::size_t bytes) override {
    std::memcpy(dst, src, bytes);
  }
  void download(void* dst, const void* src, std::size_t bytes) override {
    std::memcpy(dst, src, bytes);
  }
  void fill_bytes(void* dst, unsigned char byte, std::size_t bytes) override {
    std::memset(dst, byte, bytes);
  }
  void synchronize() override {}
  void fill_uniform(const DenseView& view, std::uint64_t seed, Precision precision) override {
    for (std::int64_t i = 0; i < view.rows; ++i)
      for (std::int64_t j = 0; j < view.cols; ++j)
        static_cast<float*>(view.data)[i * view.ld + j] =
            round_to(precision, uniform_at(seed, i, j));
  }
  void fill_lattice(const DenseView& view, const Lattice& lattice) override {
    for (std::int64_t i = 0; i < view.rows; ++i)
      for (std::int64_t j = 0; j < view.cols; ++j)
        static_cast<float*>(view.data)[i * view.ld + j] = lattice.b(i, j);
  }
  double time_us(const std::function<void()>& launch, int count) override {
    cold.push_back(flushed_since_launch);
    flushed_since_launch = false;
    double total = 0;
    for (int i = 0; i < count; ++i) {
      launch();
      total += launch_us[std::min(launches++, launch_us.size() - 1)];
    }
    now_s += total * 1e-6;
    return total;
  }
  void flush_cache() override {
    ++flushes;
    flushed_since_launch = true;
  }
  double copy_bytes_per_second() override { return 1e9; }
  ClockState clocks() override { return {}; }

 private:
  void release(void* data) noexcept override { std::free(data); }
};

}  // namespace spmmbench
