#pragma once
// cp.async: copies from global to shared memory that the thread does not wait for (PTX ISA, "Data
// Movement and Conversion Instructions: Non-bulk copy"). `to` is a shared-memory address; all
// addresses are multiples of the bytes copied.

#include <cstdint>

namespace spmmbench::ptx {

// 16 bytes past the L1 cache. Unless `condition`, zeros are written and `from` may be any address.
__device__ inline void cp_async_cg_16_if(bool condition, std::uint32_t to, const void* from) {
  asm volatile(
      "{\n.reg .pred ignore;\nsetp.eq.u32 ignore, %2, 0;\n"
      "cp.async.cg.shared.global [%0], [%1], 16, ignore;\n}\n" ::"r"(to),
      "l"(from), "r"(static_cast<std::uint32_t>(condition))
      : "memory");
}
// The same with a sign as the predicate: zeros where `index` is negative. Making a bool of it would
// take another instruction per copy.
__device__ inline void cp_async_cg_16_unless_negative(std::int32_t index, std::uint32_t to,
                                                      const void* from) {
  asm volatile(
      "{\n.reg .pred ignore;\nsetp.lt.s32 ignore, %2, 0;\n"
      "cp.async.cg.shared.global [%0], [%1], 16, ignore;\n}\n" ::"r"(to),
      "l"(from), "r"(index)
      : "memory");
}
// How 16 bytes are copied, if they are.
enum class Way : std::uint32_t { none, past_l1, through_l1 };
// The same by the given way. Only `none` may differ among the lanes of a warp.
__device__ inline void cp_async_16_unless_negative(Way way, std::int32_t index, std::uint32_t to,
                                                   const void* from) {
  asm volatile(
      "{\n.reg .pred ignore, past, through;\nsetp.lt.s32 ignore, %2, 0;\n"
      "setp.eq.u32 past, %3, %4;\nsetp.eq.u32 through, %3, %5;\n"
      "@through cp.async.ca.shared.global [%0], [%1], 16, ignore;\n"
      "@past cp.async.cg.shared.global [%0], [%1], 16, ignore;\n}\n" ::"r"(to),
      "l"(from), "r"(index), "r"(static_cast<std::uint32_t>(way)),
      "n"(static_cast<std::uint32_t>(Way::past_l1)),
      "n"(static_cast<std::uint32_t>(Way::through_l1))
      : "memory");
}
// 4, 8 or 16 bytes by way of the L1 cache, for data that other warps of the CTA read as well.
template <int kBytes>
__device__ inline void cp_async_ca(std::uint32_t to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(kBytes)
               : "memory");
}
// The same under a predicate.
template <int kBytes>
__device__ inline void cp_async_ca_if(bool condition, std::uint32_t to, const void* from) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.u32 p, %2, 0;\n"
      "@p cp.async.ca.shared.global [%0], [%1], %3;\n}\n" ::"r"(to),
      "l"(from), "r"(static_cast<std::uint32_t>(condition)), "n"(kBytes)
      : "memory");
}

__device__ inline void cp_async_commit_group() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Waits until at most `kPending` of this thread's latest groups are in flight.
template <int kPending>
__device__ inline void cp_async_wait_group() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace spmmbench::ptx
