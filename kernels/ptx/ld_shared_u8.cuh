#pragma once
// ld.shared of single bytes, as ptx/ld_shared.cuh has it for 2 and 4.

#include "ptx/ld_shared.cuh"

namespace spmmbench::ptx {

template <>
__device__ inline std::uint32_t ld_shared_next_if<std::uint8_t>(std::uint32_t condition,
                                                                std::uint32_t& from) {
  std::uint32_t x = 0;
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.u32 p, %2, 0;\n"
      "@p ld.shared.u8 %0, [%1];\n@p add.u32 %1, %1, 1;\n}\n"
      : "+r"(x), "+r"(from)
      : "r"(condition)
      : "memory");
  return x;
}

}  // namespace spmmbench::ptx
