#pragma once
// wgmma: warpgroup matrix multiply-accumulate of compute capability 9.0 (PTX ISA, "Asynchronous
// Warpgroup Level Matrix Instructions"): D[64, N] += A[64, K] * B[K, N], B in shared memory, A
// there or in registers, D in fp32 registers, K = 32 bytes of input. Executed by the 128 threads of
// a warpgroup together.
//
// Accumulator layout: warp w, lane 4g + t holds, for each 8-column tile j, at d[4j .. 4j+3]
//   (16w + g, 8j + 2t), (16w + g, 8j + 2t + 1), (16w + g + 8, 8j + 2t), (16w + g + 8, 8j + 2t + 1).

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>

#include "ptx/sm90a.cuh"

#include "ptx/tf32.cuh"

namespace spmmbench::ptx {

enum class Major { k, mn };  // which dimension of an operand is contiguous in shared memory

// Orders this thread's register and shared-memory accesses before the next mma.
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void wgmma_commit_group() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits until at most `kPending` committed groups are in flight.
template <int kPending>
__device__ inline void wgmma_wait_group() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// Matrix descriptor of an operand in the swizzle of 128, 64 or 32 bytes, its tile aligned at 8
// times as many. Offsets in bytes: K-major: rows of that length, `stride` between groups of 8 rows;
// `leading` is not used. MN-major: rows (one per k) of that length, `stride` between groups of 8 k,
// `leading` between the pieces of that length of the MN dimension. Without a swizzle (0) a tile is
// blocks of 128 bytes, MN-major: 8 k of 8 elements; `leading` and `stride` are the distances of
// blocks along k and along MN.
template <int kSwizzleBytes = 128>
__device__ inline std::uint64_t wgmma_descriptor(const void* tile, std::uint32_t leading,
                                                 std::uint32_t stride) {
  static_assert(kSwizzleBytes == 128 || kSwizzleBytes == 64 || kSwizzleBytes == 32 ||
                kSwizzleBytes == 0);
  constexpr std::uint64_t kSwizzle = kSwizzleBytes == 128  ? 1
                                     : kSwizzleBytes == 64 ? 2
                                     : kSwizzleBytes == 32 ? 3
                                                           : 0;
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(tile));
  return kSwizzle << 62 | std::uint64_t{stride >> 4} << 32 | std::uint64_t{leading >> 4} << 16 |
         (address & 0x3FFFF) >> 4;
}
// The same tile `bytes` further.
__device__ inline std::uint64_t wgmma_descriptor_advance(std::uint64_t descriptor,
                                                         std::uint32_t bytes) {
  return descriptor + (bytes >> 4);
}

// d (+)= a * b, both given by descriptors; `accumulate` 0 overwrites d. kColumns: 16, 32, 64, 128,
// 256.
template <class Input, Major kMajorB, int kColumns>
__device__ void wgmma_mma_async(float (&d)[kColumns / 2], std::uint64_t a, std::uint64_t b,
                                int accumulate) = delete;
// The same with A in registers: each warp of the warpgroup gives its own 16 rows of A as the
// fragment of mma.m16n8k16 (ptx/mma.cuh), in fp8 two values where that has one. They must stay as
// they are until the group has ended.
template <class Input, Major kMajorB, int kColumns>
__device__ void wgmma_mma_async(float (&d)[kColumns / 2], std::uint32_t a0, std::uint32_t a1,
                                std::uint32_t a2, std::uint32_t a3, std::uint64_t b,
                                int accumulate = 1) = delete;

// d += a * b with A in 2:4 structured sparsity, K = 64 bytes of B: a's descriptor is of the 16
// values that are left of every 32, `indices` are as in two_four/format.hpp. kSelector 0: those of
// the lanes 4g and 4g + 1 count, 1: those of 4g + 2 and 4g + 3. kColumns: 16, 32, 64, 128.
template <class Input, Major kMajorB, int kColumns, int kSelector>
__device__ void wgmma_mma_async_sp(float (&d)[kColumns / 2], std::uint64_t a, std::uint64_t b,
                                   std::uint32_t indices) = delete;

#define SPMMBENCH_REGS_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define SPMMBENCH_REGS_16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define SPMMBENCH_REGS_32                                                  \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define SPMMBENCH_REGS_64                                                            \
  SPMMBENCH_REGS_32                                                                  \
  ", "                                                                               \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define SPMMBENCH_REGS_128                                                                     \
  SPMMBENCH_REGS_64                                                                            \
  ", "                                                                                         \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "           \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "           \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, "     \
  "%111, "                                                                                     \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, " \
  "%127"
#define SPMMBENCH_D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SPMMBENCH_D8(i) SPMMBENCH_D4(i), SPMMBENCH_D4(i + 4)
#define SPMMBENCH_D16(i) \
  SPMMBENCH_D4(i), SPMMBENCH_D4(i + 4), SPMMBENCH_D4(i + 8), SPMMBENCH_D4(i + 12)
#define SPMMBENCH_D32(i) SPMMBENCH_D16(i), SPMMBENCH_D16(i + 16)
#define SPMMBENCH_D64(i) SPMMBENCH_D32(i), SPMMBENCH_D32(i + 32)
#define SPMMBENCH_D128(i) SPMMBENCH_D64(i), SPMMBENCH_D64(i + 64)

// clang-format off
#define SPMMBENCH_WGMMA(Input, kMajorB, kColumns, shape, types, kCount, A, B, P, flags)               \
  template <>                                                                                         \
  __device__ inline void wgmma_mma_async<Input, kMajorB, kColumns>(                                   \
      float (&d)[kCount], std::uint64_t a, std::uint64_t b, int accumulate) {                         \
    asm volatile(                                                                                     \
        "{\n.reg .pred p;\nsetp.ne.b32 p, " P ", 0;\n"                                                \
        "wgmma.mma_async.sync.aligned." shape ".f32." types " {" SPMMBENCH_REGS_##kCount "}, " A ", " B \
        ", p, 1, 1" flags ";\n}\n"                                                                    \
        : SPMMBENCH_D##kCount(0)                                                                      \
        : "l"(a), "l"(b), "r"(accumulate));                                                           \
  }
#define SPMMBENCH_WGMMA_N(kColumns, n, kCount, A, B, P)                                               \
  SPMMBENCH_WGMMA(__half, Major::k, kColumns, "m64" n "k16", "f16.f16", kCount, A, B, P, ", 0, 0")    \
  SPMMBENCH_WGMMA(__half, Major::mn, kColumns, "m64" n "k16", "f16.f16", kCount, A, B, P, ", 0, 1")   \
  SPMMBENCH_WGMMA(__nv_bfloat16, Major::k, kColumns, "m64" n "k16", "bf16.bf16", kCount, A, B, P, ", 0, 0")  \
  SPMMBENCH_WGMMA(__nv_bfloat16, Major::mn, kColumns, "m64" n "k16", "bf16.bf16", kCount, A, B, P, ", 0, 1") \
  SPMMBENCH_WGMMA(Tf32, Major::k, kColumns, "m64" n "k8", "tf32.tf32", kCount, A, B, P, "")                  \
  SPMMBENCH_WGMMA(__nv_fp8_e4m3, Major::k, kColumns, "m64" n "k32", "e4m3.e4m3", kCount, A, B, P, "")        \
  SPMMBENCH_WGMMA(__nv_fp8_e5m2, Major::k, kColumns, "m64" n "k32", "e5m2.e5m2", kCount, A, B, P, "")
SPMMBENCH_WGMMA_N(16, "n16", 8, "%8", "%9", "%10")
SPMMBENCH_WGMMA_N(32, "n32", 16, "%16", "%17", "%18")
SPMMBENCH_WGMMA_N(64, "n64", 32, "%32", "%33", "%34")
SPMMBENCH_WGMMA_N(128, "n128", 64, "%64", "%65", "%66")
SPMMBENCH_WGMMA_N(256, "n256", 128, "%128", "%129", "%130")

#define SPMMBENCH_WGMMA_RA(Input, kMajorB, kColumns, shape, types, kCount, A, B, P, flags)            \
  template <>                                                                                         \
  __device__ inline void wgmma_mma_async<Input, kMajorB, kColumns>(                                   \
      float (&d)[kCount], std::uint32_t a0, std::uint32_t a1, std::uint32_t a2, std::uint32_t a3,     \
      std::uint64_t b, int accumulate) {                                                              \
    asm volatile(                                                                                     \
        "{\n.reg .pred p;\nsetp.ne.b32 p, " P ", 0;\n"                                                \
        "wgmma.mma_async.sync.aligned." shape ".f32." types " {" SPMMBENCH_REGS_##kCount "}, {" A     \
        "}, " B ", p, 1, 1" flags ";\n}\n"                                                            \
        : SPMMBENCH_D##kCount(0)                                                                      \
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(accumulate));                               \
  }
#define SPMMBENCH_WGMMA_RA_N(kColumns, n, kCount, A, B, P)                                            \
  SPMMBENCH_WGMMA_RA(__half, Major::k, kColumns, "m64" n "k16", "f16.f16", kCount, A, B, P, ", 0")    \
  SPMMBENCH_WGMMA_RA(__half, Major::mn, kColumns, "m64" n "k16", "f16.f16", kCount, A, B, P, ", 1")   \
  SPMMBENCH_WGMMA_RA(__nv_bfloat16, Major::k, kColumns, "m64" n "k16", "bf16.bf16", kCount, A, B, P, ", 0")  \
  SPMMBENCH_WGMMA_RA(__nv_bfloat16, Major::mn, kColumns, "m64" n "k16", "bf16.bf16", kCount, A, B, P, ", 1") \
  SPMMBENCH_WGMMA_RA(__nv_fp8_e4m3, Major::k, kColumns, "m64" n "k32", "e4m3.e4m3", kCount, A, B, P, "")     \
  SPMMBENCH_WGMMA_RA(__nv_fp8_e5m2, Major::k, kColumns, "m64" n "k32", "e5m2.e5m2", kCount, A, B, P, "")
SPMMBENCH_WGMMA_RA_N(16, "n16", 8, "%8, %9, %10, %11", "%12", "%13")
SPMMBENCH_WGMMA_RA_N(32, "n32", 16, "%16, %17, %18, %19", "%20", "%21")
SPMMBENCH_WGMMA_RA_N(64, "n64", 32, "%32, %33, %34, %35", "%36", "%37")
SPMMBENCH_WGMMA_RA_N(128, "n128", 64, "%64, %65, %66, %67", "%68", "%69")
SPMMBENCH_WGMMA_RA_N(256, "n256", 128, "%128, %129, %130, %131", "%132", "%133")

#define SPMMBENCH_WGMMA_SP(Input, kMajorB, kColumns, kSelector, n, types, kCount, A, B, I, selector, transposed) \
  template <>                                                                                         \
  __device__ inline void wgmma_mma_async_sp<Input, kMajorB, kColumns, kSelector>(                     \
      float (&d)[kCount], std::uint64_t a, std::uint64_t b, std::uint32_t indices) {                  \
    asm volatile("wgmma.mma_async.sp.sync.aligned.m64" n "k32.f32." types                             \
                 " {" SPMMBENCH_REGS_##kCount "}, " A ", " B ", " I ", " selector                     \
                 ", 1, 1, 1, 0, " transposed ";\n"                                                    \
                 : SPMMBENCH_D##kCount(0)                                                             \
                 : "l"(a), "l"(b), "r"(indices));                                                     \
  }
#define SPMMBENCH_WGMMA_SP_S(kColumns, kSelector, n, kCount, A, B, I, selector)                       \
  SPMMBENCH_WGMMA_SP(__half, Major::k, kColumns, kSelector, n, "f16.f16", kCount, A, B, I, selector, "0")  \
  SPMMBENCH_WGMMA_SP(__half, Major::mn, kColumns, kSelector, n, "f16.f16", kCount, A, B, I, selector, "1") \
  SPMMBENCH_WGMMA_SP(__nv_bfloat16, Major::k, kColumns, kSelector, n, "bf16.bf16", kCount, A, B, I, selector, "0") \
  SPMMBENCH_WGMMA_SP(__nv_bfloat16, Major::mn, kColumns, kSelector, n, "bf16.bf16", kCount, A, B, I, selector, "1")
#define SPMMBENCH_WGMMA_SP_N(kColumns, n, kCount, A, B, I)                                            \
  SPMMBENCH_WGMMA_SP_S(kColumns, 0, n, kCount, A, B, I, "0")                                          \
  SPMMBENCH_WGMMA_SP_S(kColumns, 1, n, kCount, A, B, I, "1")
SPMMBENCH_WGMMA_SP_N(16, "n16", 8, "%8", "%9", "%10")
SPMMBENCH_WGMMA_SP_N(32, "n32", 16, "%16", "%17", "%18")
SPMMBENCH_WGMMA_SP_N(64, "n64", 32, "%32", "%33", "%34")
SPMMBENCH_WGMMA_SP_N(128, "n128", 64, "%64", "%65", "%66")
// clang-format on

#undef SPMMBENCH_WGMMA_SP_N
#undef SPMMBENCH_WGMMA_SP_S
#undef SPMMBENCH_WGMMA_SP
#undef SPMMBENCH_WGMMA_RA_N
#undef SPMMBENCH_WGMMA_RA
#undef SPMMBENCH_WGMMA_N
#undef SPMMBENCH_WGMMA
#undef SPMMBENCH_D128
#undef SPMMBENCH_D64
#undef SPMMBENCH_D32
#undef SPMMBENCH_D16
#undef SPMMBENCH_D8
#undef SPMMBENCH_D4
#undef SPMMBENCH_REGS_128
#undef SPMMBENCH_REGS_64
#undef SPMMBENCH_REGS_32
#undef SPMMBENCH_REGS_16
#undef SPMMBENCH_REGS_8

}  // namespace spmmbench::ptx
