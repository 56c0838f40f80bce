#pragma once
// wgmma with A in registers: D[64, N] += A[64, 16] * B[16, N]. Each warp of the warpgroup gives its
// own 16 rows of A as the fragment of mma.m16n8k16 (common/mma.cuh) and has the same 16 rows of D.
// The registers of A must stay as they are until the group they were committed in has ended.

#include "common/wgmma.cuh"

namespace spmmbench::wgmma {

// kColumns 64, 128 or 256.
template <class Input, Major kMajorB, int kColumns>
struct MmaRegisterA;

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
#define SPMMBENCH_D16(i) \
  SPMMBENCH_D4(i), SPMMBENCH_D4(i + 4), SPMMBENCH_D4(i + 8), SPMMBENCH_D4(i + 12)
#define SPMMBENCH_D32(i) SPMMBENCH_D16(i), SPMMBENCH_D16(i + 16)
#define SPMMBENCH_D64(i) SPMMBENCH_D32(i), SPMMBENCH_D32(i + 32)
#define SPMMBENCH_D128(i) SPMMBENCH_D64(i), SPMMBENCH_D64(i + 64)

#define SPMMBENCH_WGMMA(Input, kMajorB, kColumns, shape, types, kCount, A, B, transposed)       \
  template <>                                                                                   \
  struct MmaRegisterA<Input, kMajorB, kColumns> {                                               \
    __device__ static void run(float (&d)[kCount], std::uint32_t a0, std::uint32_t a1,          \
                               std::uint32_t a2, std::uint32_t a3, std::uint64_t b) {           \
      asm volatile("wgmma.mma_async.sync.aligned." shape ".f32." types                          \
                   " {" SPMMBENCH_REGS_##kCount "}, {" A "}, " B ", 1, 1, 1, " transposed ";\n" \
                   : SPMMBENCH_D##kCount(0)                                                     \
                   : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b));                               \
    }                                                                                           \
  };
#define SPMMBENCH_WGMMA_N(kColumns, n, kCount, A, B)                                           \
  SPMMBENCH_WGMMA(__half, Major::k, kColumns, "m64" n "k16", "f16.f16", kCount, A, B, "0")     \
  SPMMBENCH_WGMMA(__half, Major::mn, kColumns, "m64" n "k16", "f16.f16", kCount, A, B, "1")    \
  SPMMBENCH_WGMMA(__nv_bfloat16, Major::k, kColumns, "m64" n "k16", "bf16.bf16", kCount, A, B, \
                  "0")                                                                         \
  SPMMBENCH_WGMMA(__nv_bfloat16, Major::mn, kColumns, "m64" n "k16", "bf16.bf16", kCount, A, B, "1")

SPMMBENCH_WGMMA_N(64, "n64", 32, "%32, %33, %34, %35", "%36")
SPMMBENCH_WGMMA_N(128, "n128", 64, "%64, %65, %66, %67", "%68")
SPMMBENCH_WGMMA_N(256, "n256", 128, "%128, %129, %130, %131", "%132")

#undef SPMMBENCH_WGMMA_N
#undef SPMMBENCH_WGMMA
#undef SPMMBENCH_D128
#undef SPMMBENCH_D64
#undef SPMMBENCH_D32
#undef SPMMBENCH_D16
#undef SPMMBENCH_D4
#undef SPMMBENCH_REGS_128
#undef SPMMBENCH_REGS_64
#undef SPMMBENCH_REGS_32

}  // namespace spmmbench::wgmma
