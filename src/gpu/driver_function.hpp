#pragma once
// Functions of the CUDA driver, looked up at run time, so that the program links and starts without
// a driver.

#include <cuda_runtime.h>
#include <fmt/format.h>

#include "gpu/cuda_check.hpp"
#include "spmmbench/device.hpp"

namespace spmmbench {

// `Function`: the type that cudaTypedefs.h has for the function of at most version 12.0. Throws
// DeviceError where the driver has none of that name.
template <class Function>
Function driver_function(const char* name) {
  void* symbol = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  SPMMBENCH_CUDA(cudaGetDriverEntryPointByVersion(name, &symbol, 12000, cudaEnableDefault, &found));
#else  // the same, of the version of the runtime
  SPMMBENCH_CUDA(cudaGetDriverEntryPoint(name, &symbol, cudaEnableDefault, &found));
#endif
  if (found != cudaDriverEntryPointSuccess)
    throw DeviceError(fmt::format("the CUDA driver has no {}", name), false);
  return reinterpret_cast<Function>(symbol);
}

}  // namespace spmmbench
