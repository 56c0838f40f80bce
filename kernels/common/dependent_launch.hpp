#pragma once
// Launches of kernels that begin with ptx::griddepcontrol_wait() (ptx/griddepcontrol.cuh): their
// CTAs start while the stream's previous kernel drains.

#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <utility>

#include "gpu/cuda_check.hpp"
#include "spmmbench/device.hpp"

namespace spmmbench {

// Whether kernels wait on the current device: those compiled for compute capability 9.0 and above.
// What was compiled for less, and is translated by the driver, does not wait even on newer devices,
// so it must not start before its predecessor has ended.
bool kernels_wait();

inline cudaLaunchAttribute overlap_attribute() {
  cudaLaunchAttribute out{};
  out.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  out.val.programmaticStreamSerializationAllowed = 1;
  return out;
}

template <class... Parameters, class... Values>
void launch_with(std::span<cudaLaunchAttribute> attributes, void (*kernel)(Parameters...),
                 dim3 grid, dim3 block, std::size_t shared_bytes, Stream stream,
                 Values&&... values) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = static_cast<cudaStream_t>(stream.handle);
  config.attrs = attributes.data();
  config.numAttrs = static_cast<unsigned>(attributes.size());
  SPMMBENCH_CUDA(cudaLaunchKernelEx(&config, kernel, Parameters(values)...));
  SPMMBENCH_CUDA_LAUNCHED();
}

// `overlap`: kernels_wait() where the kernel is compiled for every device; true where for 9.0
// alone.
template <class... Parameters, class... Values>
void launch_dependent(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                      std::size_t shared_bytes, Stream stream, bool overlap, Values&&... values) {
  cudaLaunchAttribute attribute = overlap_attribute();
  launch_with({&attribute, overlap ? 1U : 0U}, kernel, grid, block, shared_bytes, stream,
              std::forward<Values>(values)...);
}

// `cluster`: this many consecutive CTAs of the grid form one.
template <class... Parameters, class... Values>
void launch_dependent_clusters(void (*kernel)(Parameters...), unsigned cluster, dim3 grid,
                               dim3 block, std::size_t shared_bytes, Stream stream,
                               Values&&... values) {
  cudaLaunchAttribute attributes[] = {overlap_attribute(), {}};
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {cluster, 1, 1};
  launch_with(attributes, kernel, grid, block, shared_bytes, stream,
              std::forward<Values>(values)...);
}

}  // namespace spmmbench
