#pragma once
// ld.shared: loads from a shared-memory address (PTX ISA, "Data Movement and Conversion
// Instructions: ld"). The last two are loads under a predicate.

#include <cstdint>

namespace spmmbench::ptx {

// The word this many bytes after `from`.
template <int kOffset>
__device__ inline std::uint32_t ld_shared(std::uint32_t from) {
  std::uint32_t x;
  asm volatile("ld.shared.u32 %0, [%1 + %2];" : "=r"(x) : "r"(from), "n"(kOffset) : "memory");
  return x;
}
__device__ inline uint2 ld_shared_v2(std::uint32_t from) {
  uint2 x;
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "r"(from) : "memory");
  return x;
}
__device__ inline uint4 ld_shared_v4(std::uint32_t from) {
  uint4 x;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "r"(from)
               : "memory");
  return x;
}

// The element of 2 or 4 bytes at `from`, which moves on by one element, where `condition` is not
// zero. Else zero, and `from` stays.
template <class T>
__device__ inline std::uint32_t ld_shared_next_if(std::uint32_t condition, std::uint32_t& from) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4);
  std::uint32_t x = 0;
  if constexpr (sizeof(T) == 2)
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.u32 p, %2, 0;\n"
        "@p ld.shared.u16 %0, [%1];\n@p add.u32 %1, %1, 2;\n}\n"
        : "+r"(x), "+r"(from)
        : "r"(condition)
        : "memory");
  else
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.u32 p, %2, 0;\n"
        "@p ld.shared.u32 %0, [%1];\n@p add.u32 %1, %1, 4;\n}\n"
        : "+r"(x), "+r"(from)
        : "r"(condition)
        : "memory");
  return x;
}

// x = the word at `from` where `condition` is not zero; else x stays as it is.
__device__ inline void ld_shared_if(std::uint32_t& x, std::uint32_t condition, std::uint32_t from) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %1, 0;\n@p ld.shared.u32 %0, [%2];\n}\n"
               : "+r"(x)
               : "r"(condition), "r"(from)
               : "memory");
}

}  // namespace spmmbench::ptx
