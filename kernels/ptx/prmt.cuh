#pragma once
// prmt: four bytes of two registers (PTX ISA, "Data Movement and Conversion Instructions: prmt").

#include <cstdint>

namespace spmmbench::ptx {

// Byte i of the result is byte number `selector >> 4 * i & 7` of a (0 .. 3) and b (4 .. 7). The
// upper half of the selector does not matter. __byte_perm masks the selector first.
__device__ inline std::uint32_t prmt(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
  std::uint32_t x;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(x) : "r"(a), "r"(b), "r"(selector));
  return x;
}

}  // namespace spmmbench::ptx
