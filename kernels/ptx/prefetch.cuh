#pragma once
// prefetch: brings data nearer before it is used (PTX ISA, "Data Movement and Conversion
// Instructions: prefetch").

#include <cuda.h>

namespace spmmbench::ptx {

// The description by which the first copy of a tensor would wait for memory.
__device__ inline void prefetch_tensormap(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" : : "l"(&map) : "memory");
}

}  // namespace spmmbench::ptx
