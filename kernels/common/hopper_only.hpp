#pragma once
// Operations that exist on compute capability 9.0 alone.

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <string_view>

#include "gpu/cuda_check.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {

// An attribute of the current device.
inline int device_attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  SPMMBENCH_CUDA(cudaGetDevice(&device));
  SPMMBENCH_CUDA(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

// Throws Unsupported on other GPUs.
inline void require_hopper(std::string_view operation) {
  const int major = device_attribute(cudaDevAttrComputeCapabilityMajor),
            minor = device_attribute(cudaDevAttrComputeCapabilityMinor);
  if (major != 9 || minor != 0)
    throw Unsupported(fmt::format("{} needs compute capability 9.0; this GPU has {}.{}", operation,
                                  major, minor));
}

}  // namespace spmmbench
