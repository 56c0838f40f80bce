#pragma once
// ld.global.nc: loads of memory that no one writes while the kernel runs (PTX ISA, "Data Movement
// and Conversion Instructions: ld.global.nc").

#include <cstdint>

namespace spmmbench::ptx {

// Read once: not kept in the L1 cache.
__device__ inline uint4 ld_global_nc_no_allocate_v4(const void* from) {
  uint4 x;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "l"(__cvta_generic_to_global(from)));
  return x;
}
__device__ inline uint2 ld_global_nc_no_allocate_v2(const void* from) {
  uint2 x;
  asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];"
               : "=r"(x.x), "=r"(x.y)
               : "l"(__cvta_generic_to_global(from)));
  return x;
}
__device__ inline std::uint32_t ld_global_nc_no_allocate(const void* from) {
  std::uint32_t x;
  asm volatile("ld.global.nc.L1::no_allocate.u32 %0, [%1];"
               : "=r"(x)
               : "l"(__cvta_generic_to_global(from)));
  return x;
}

}  // namespace spmmbench::ptx
