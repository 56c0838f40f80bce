#pragma once
// The most dynamic shared memory that a kernel may be launched with, if plans differ in it.

#include <cuda_runtime.h>

#include "gpu/cuda_check.hpp"

namespace spmmbench {

// The limit belongs to the kernel, which plans of other shapes launch as well, so it is never
// lowered. Nothing locks it: kernels whose plans differ call this in `prepare` or `bind`, which no
// two threads do at once on one device (src/library).
template <class... Parameters>
void allow_shared_bytes(void (*kernel)(Parameters...), int bytes) {
  cudaFuncAttributes now{};
  SPMMBENCH_CUDA(cudaFuncGetAttributes(&now, kernel));
  if (now.maxDynamicSharedSizeBytes >= bytes) return;
  SPMMBENCH_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
}

}  // namespace spmmbench
