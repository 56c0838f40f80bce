#include "devices.hpp"

#include <cstdlib>
#include <string_view>

namespace spmmbench::test {
namespace {

bool lost = false;

}  // namespace

Device* find_device(DeviceKind kind) {
  if (kind == DeviceKind::host) {
    static const std::unique_ptr<Device> host = open_host_device();
    return host.get();
  }
  static const std::unique_ptr<Device> cuda =
      probe_cuda().devices.empty() ? nullptr : open_cuda_device(0);
  return cuda.get();
}

std::string why_no_device() { return probe_cuda().reason; }

bool gpu_required() {
  const char* text = std::getenv("SPMMBENCH_REQUIRE_GPU");
  return text != nullptr && std::string_view(text) == "1";
}

void mark_device_lost(const DeviceError& error) { lost = lost || error.device_lost(); }

bool device_lost() { return lost; }

}  // namespace spmmbench::test
