#pragma once
// Launches of kernels that begin with ptx::griddepcontrol_wait() (ptx/griddepcontrol.cuh): on
// compute capability 9.0 and above their CTAs start while the stream's previous kernel drains.

#include <cuda_runtime.h>

#include <cstddef>

#include "gpu/cuda_check.hpp"
#include "spmmbench/device.hpp"

namespace spmmbench {

// `cluster`: consecutive CTAs of the grid that form a cluster.
template <class... Parameters, class... Values>
void launch_dependent_clusters(void (*kernel)(Parameters...), unsigned cluster, dim3 grid,
                               dim3 block, std::size_t shared_bytes, Stream stream,
                               Values&&... values) {
  cudaLaunchAttribute attributes[2]{};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {cluster, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = static_cast<cudaStream_t>(stream.handle);
  config.attrs = attributes;
  config.numAttrs = 2;
  SPMMBENCH_CUDA(cudaLaunchKernelEx(&config, kernel, Parameters(values)...));
  SPMMBENCH_CUDA_LAUNCHED();
}

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
