#pragma once
// Kernels that take their place on the device while their predecessor in the stream still runs.

#include <cuda_runtime.h>

#include "gpu/cuda_check.hpp"
#include "spmmbench/device.hpp"

namespace spmmbench {

// Code for less than compute capability 9.0 does not wait for its predecessor, also on newer
// devices, for which the driver translates it.
template <class Kernel>
bool kernel_waits(Kernel* kernel) {
  constexpr int kFirstThatWaits = 90;  // version of PTX's virtual architecture
  cudaFuncAttributes attributes{};
  SPMMBENCH_CUDA(cudaFuncGetAttributes(&attributes, kernel));
  return attributes.ptxVersion >= kFirstThatWaits;
}

// Enqueues a kernel of this many blocks and threads of each that calls
// cudaGridDependencySynchronize before it reads or writes what others do.
template <class... Parameters, class... Arguments>
void launch_dependent(void (*kernel)(Parameters...), unsigned blocks, unsigned threads,
                      Stream stream, Arguments... arguments) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.stream = static_cast<cudaStream_t>(stream.handle);
  config.attrs = &attribute;
  config.numAttrs = kernel_waits(kernel) ? 1 : 0;
  SPMMBENCH_CUDA(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
  SPMMBENCH_CUDA_LAUNCHED();
}

}  // namespace spmmbench
