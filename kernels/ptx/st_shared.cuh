#pragma once
// st.shared: stores to a shared-memory address (PTX ISA, "Data Movement and Conversion
// Instructions: st").

#include <cstdint>

namespace spmmbench::ptx {

// The low or the high half of `x`.
__device__ inline void st_shared_low_half(std::uint32_t to, std::uint32_t x) {
  asm volatile("{\n.reg .b16 l, h;\nmov.b32 {l, h}, %1;\nst.shared.b16 [%0], l;\n}\n" ::"r"(to),
               "r"(x)
               : "memory");
}
__device__ inline void st_shared_high_half(std::uint32_t to, std::uint32_t x) {
  asm volatile("{\n.reg .b16 l, h;\nmov.b32 {l, h}, %1;\nst.shared.b16 [%0], h;\n}\n" ::"r"(to),
               "r"(x)
               : "memory");
}
// Four words of zeros.
__device__ inline void st_shared_v4_zero(std::uint32_t to) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(to), "r"(0) : "memory");
}

}  // namespace spmmbench::ptx
