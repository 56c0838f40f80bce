#pragma once
// Empty assembly: no instruction, but the compiler must have the value in a register here.

#include <cstdint>

namespace spmmbench::ptx {

// The compiler would rather compute an address anew in every iteration.
__device__ inline void keep_in_register(std::uint32_t& x) { asm volatile("" : "+r"(x)); }
template <class T>
__device__ void keep_in_register(const T*& x) {
  asm volatile("" : "+l"(x));
}
// Uses of these values are not moved across this place: around wgmma, which changes them while the
// thread goes on.
template <int kCount>
__device__ inline void keep_in_registers(float (&x)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(x[i])::"memory");
}

}  // namespace spmmbench::ptx
