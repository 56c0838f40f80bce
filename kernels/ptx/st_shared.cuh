#pragma once
// st.shared: stores to a shared-memory address (PTX ISA, "Data Movement and Conversion
// Instructions: st").

#include <cstdint>

namespace spmmbench::ptx {

// This many bytes after `to`.
template <int kOffset = 0>
__device__ void st_shared_v4(std::uint32_t to, const uint4& x) {
  asm volatile("st.shared.v4.u32 [%0 + %5], {%1, %2, %3, %4};" ::"r"(to), "r"(x.x), "r"(x.y),
               "r"(x.z), "r"(x.w), "n"(kOffset)
               : "memory");
}

}  // namespace spmmbench::ptx
