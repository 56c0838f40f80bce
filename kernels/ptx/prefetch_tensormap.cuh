#pragma once
// Fetches a tensor map before the first copy that uses it (PTX ISA, "prefetch, prefetchu").

#include <cuda.h>

namespace spmmbench::ptx {

// `map`: a __grid_constant__ parameter of the kernel.
__device__ inline void prefetch_tensormap(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

}  // namespace spmmbench::ptx
