#pragma once
// Launches of kernels that begin with ptx::griddepcontrol_wait() (ptx/griddepcontrol.cuh): on
// compute capability 9.0 and above their CTAs start while the stream's previous kernel drains.

#include <cuda_runtime.h>

#include <cstddef>

#include "gpu/cuda_check.hpp"
#include "spmmbench/device.hpp"

namespace spmmbench {

template <class... Parameters, class... Values>
void launch_dependent(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                      std::size_t shared_bytes, Stream stream, bool overlap, Values&&... values) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = static_cast<cudaStream_t>(stream.handle);
  config.attrs = &attribute;
  config.numAttrs = overlap ? 1 : 0;
  SPMMBENCH_CUDA(cudaLaunchKernelEx(&config, kernel, Parameters(values)...));
  SPMMBENCH_CUDA_LAUNCHED();
}

}  // namespace spmmbench
