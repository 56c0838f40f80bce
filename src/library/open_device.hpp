#pragma once

#include <memory>

#include "gpu/backend.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {

// The host, or the GPU that is current in the calling thread. Throws Unsupported without one.
inline std::unique_ptr<Device> open_device(DeviceKind kind) {
  if (kind == DeviceKind::host) return open_host_device();
  if (const CudaProbe probe = probe_cuda(); probe.devices.empty()) throw Unsupported(probe.reason);
  return open_cuda_device(current_cuda_device());
}

}  // namespace spmmbench
