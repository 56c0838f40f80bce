#include "plugin/host_code_device.hpp"

#include "gpu/backend.hpp"

namespace spmmbench {
namespace {

class HostCodeDevice final : public Device {
 public:
  HostCodeDevice() {  // what host code may ask for, of an H200
    info_ = host_->info();
    info_.kind = DeviceKind::cuda;
    info_.name = "the host in place of a GPU";
    info_.compute_capability = 90;
    info_.sm_count = 132;
    info_.shared_per_block = 227 << 10;
  }

  const DeviceInfo& info() const override { return info_; }
  Stream stream() const override { return {}; }
  std::size_t free_bytes() const override { return host_->free_bytes(); }
  Buffer allocate(std::size_t bytes) override { return host_->allocate(bytes); }
  using Device::upload;
  void upload(void* device_dst, const void* host_src, std::size_t bytes) override {
    host_->upload(device_dst, host_src, bytes);
  }
  void download(void* host_dst, const void* device_src, std::size_t bytes) override {
    host_->download(host_dst, device_src, bytes);
  }
  void fill_bytes(void* device_dst, unsigned char byte, std::size_t bytes) override {
    host_->fill_bytes(device_dst, byte, bytes);
  }
  void synchronize() override {}
  void fill_uniform(const DenseView& view, std::uint64_t seed, Precision precision) override {
    host_->fill_uniform(view, seed, precision);
  }
  void fill_lattice(const DenseView& view, const Lattice& lattice) override {
    host_->fill_lattice(view, lattice);
  }
  double time_us(const std::function<void()>& launch, int count) override {
    return host_->time_us(launch, count);
  }
  void flush_cache() override {}
  double copy_bytes_per_second() override { return host_->copy_bytes_per_second(); }
  ClockState clocks() override { return {}; }

 private:
  void release(void*) noexcept override {}  // buffers are the host's

  std::unique_ptr<Device> host_ = open_host_device();
  DeviceInfo info_;
};

}  // namespace

std::unique_ptr<Device> open_host_code_device() { return std::make_unique<HostCodeDevice>(); }

}  // namespace spmmbench
