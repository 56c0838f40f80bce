#pragma once
// cp.async, ldmatrix and dependent launches: what cuda::ptx lacks of them.

#include <cuda_runtime.h>

#include <cstdint>

namespace spmmbench {

// 16 bytes from global to shared memory past the L1 cache, or 16 zero bytes where `fetch` is false
// (then `from` is not read and may be any address).
__device__ inline void copy_async(std::uint32_t shared_to, const void* from, bool fetch) {
  asm volatile(
      "{\n.reg .pred skip;\nsetp.eq.u32 skip, %2, 0;\n"
      "cp.async.cg.shared.global [%0], [%1], 16, skip;\n}\n" ::"r"(shared_to),
      "l"(from), "r"(static_cast<std::uint32_t>(fetch))
      : "memory");
}
// The same, zeros where `index` is negative.
__device__ inline void copy_async_if_index(std::uint32_t shared_to, const void* from,
                                           std::int32_t index) {
  asm volatile(
      "{\n.reg .pred skip;\nsetp.lt.s32 skip, %2, 0;\n"
      "cp.async.cg.shared.global [%0], [%1], 16, skip;\n}\n" ::"r"(shared_to),
      "l"(from), "r"(index)
      : "memory");
}
// kBytes (4, 8 or 16) by way of the L1 cache, for data that other warps of the block read as well.
template <int kBytes>
__device__ inline void copy_async_cached(std::uint32_t shared_to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared_to), "l"(from), "n"(kBytes)
               : "memory");
}
// The same where `fetch` is true, 16 bytes.
__device__ inline void copy_async_cached_if(std::uint32_t shared_to, const void* from, bool fetch) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.u32 p, %2, 0;\n@p cp.async.ca.shared.global [%0], [%1], "
      "16;\n}\n" ::"r"(shared_to),
      "l"(from), "r"(static_cast<std::uint32_t>(fetch))
      : "memory");
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until at most kPending of this thread's committed groups are in flight.
template <int kPending>
__device__ inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// Four 8 x 8 matrices of 16-bit elements, transposed: lane i gives the address of row i % 8 of
// matrix i / 8; lane 4g + t gets elements (2t, g) and (2t + 1, g) of each.
__device__ inline void load_matrices_transposed(std::uint32_t (&to)[4], std::uint32_t shared_row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_row)
               : "memory");
}
__device__ inline uint2 load_shared_8(std::uint32_t from) {
  uint2 x;
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "r"(from) : "memory");
  return x;
}
__device__ inline uint4 load_shared_16(std::uint32_t from) {
  uint4 x;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "r"(from)
               : "memory");
  return x;
}

// The next element of 2 or 4 bytes, where `take` is not zero: then `from` moves past it. Else zero.
template <class T>
__device__ inline std::uint32_t take_shared_if(std::uint32_t& from, std::uint32_t take) {
  std::uint32_t x = 0;
  if constexpr (sizeof(T) == 2)
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.u32 p, %2, 0;\n"
        "@p ld.shared.u16 %0, [%1];\n@p add.u32 %1, %1, 2;\n}\n"
        : "+r"(x), "+r"(from)
        : "r"(take)
        : "memory");
  else
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.u32 p, %2, 0;\n"
        "@p ld.shared.u32 %0, [%1];\n@p add.u32 %1, %1, 4;\n}\n"
        : "+r"(x), "+r"(from)
        : "r"(take)
        : "memory");
  return x;
}

// Keeps a value in a register: the compiler would rather compute an address anew in every
// iteration.
__device__ inline void keep(std::uint32_t& x) { asm volatile("" : "+r"(x)); }
template <class T>
__device__ void keep(const T*& x) {
  asm volatile("" : "+l"(x));
}

// Dependent launch: a kernel started by launch_dependent may run before its predecessor in the
// stream has ended. It reads what the plan prepared, then waits here before it touches B or C.
__device__ inline void wait_for_predecessor() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}
// Lets the successor start as soon as there is room. Safe anywhere: the successor's wait covers
// this kernel's end.
__device__ inline void release_successor() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

}  // namespace spmmbench
