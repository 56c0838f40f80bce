#pragma once

#include <functional>
#include <memory>

#include "gpu/backend.hpp"
#include "gpu/ordered_device.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {

// The host, or the GPU that is current in the calling thread. Throws Unsupported without one.
// `in_order`: as in gpu/ordered_device.hpp.
inline std::unique_ptr<Device> open_device(
    DeviceKind kind, const std::function<bool()>& in_order = [] { return false; }) {
  if (kind == DeviceKind::host) return open_host_device();
  if (const CudaProbe probe = probe_cuda(); probe.devices.empty()) throw Unsupported(probe.reason);
  return open_cuda_device(current_cuda_device(), in_order);
}

}  // namespace spmmbench
