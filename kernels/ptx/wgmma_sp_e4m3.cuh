#pragma once
// wgmma with A in 2:4 structured sparsity in e4m3, as ptx/wgmma.cuh has it for 16 bits. B is
// K-major.

#include "ptx/wgmma.cuh"

namespace spmmbench::ptx {

// d (+)= a * b with K = 64: a's descriptor is of the 32 values that are left of every 64, `indices`
// are as in two_four/format.hpp, and those of all lanes count; `accumulate` 0 overwrites d.
// kColumns: 16, 32, 64, 128.
template <int kColumns>
__device__ void wgmma_mma_async_sp_e4m3(float (&d)[kColumns / 2], std::uint64_t a, std::uint64_t b,
                                        std::uint32_t indices, int accumulate) = delete;

// clang-format off
#define SPMMBENCH_REGS_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define SPMMBENCH_REGS_16 SPMMBENCH_REGS_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define SPMMBENCH_REGS_32 SPMMBENCH_REGS_16 \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define SPMMBENCH_REGS_64 SPMMBENCH_REGS_32 \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47" \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define SPMMBENCH_D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SPMMBENCH_D8(i) SPMMBENCH_D4(i), SPMMBENCH_D4(i + 4)
#define SPMMBENCH_D16(i) SPMMBENCH_D8(i), SPMMBENCH_D8(i + 8)
#define SPMMBENCH_D32(i) SPMMBENCH_D16(i), SPMMBENCH_D16(i + 16)
#define SPMMBENCH_D64(i) SPMMBENCH_D32(i), SPMMBENCH_D32(i + 32)
#define SPMMBENCH_WGMMA_SP(kColumns, n, kCount, A, B, I, P)                                           \
  template <>                                                                                         \
  __device__ inline void wgmma_mma_async_sp_e4m3<kColumns>(                                           \
      float (&d)[kCount], std::uint64_t a, std::uint64_t b, std::uint32_t indices, int accumulate) {  \
    asm volatile(                                                                                     \
        "{\n.reg .pred p;\nsetp.ne.b32 p, " P ", 0;\n"                                                \
        "wgmma.mma_async.sp.sync.aligned.m64" n "k64.f32.e4m3.e4m3 {" SPMMBENCH_REGS_##kCount "}, "   \
        A ", " B ", " I ", 0, p, 1, 1;\n}\n"                                                          \
        : SPMMBENCH_D##kCount(0)                                                                      \
        : "l"(a), "l"(b), "r"(indices), "r"(accumulate));                                             \
  }
SPMMBENCH_WGMMA_SP(16, "n16", 8, "%8", "%9", "%10", "%11")
SPMMBENCH_WGMMA_SP(32, "n32", 16, "%16", "%17", "%18", "%19")
SPMMBENCH_WGMMA_SP(64, "n64", 32, "%32", "%33", "%34", "%35")
SPMMBENCH_WGMMA_SP(128, "n128", 64, "%64", "%65", "%66", "%67")
// clang-format on

#undef SPMMBENCH_WGMMA_SP
#undef SPMMBENCH_D64
#undef SPMMBENCH_D32
#undef SPMMBENCH_D16
#undef SPMMBENCH_D8
#undef SPMMBENCH_D4
#undef SPMMBENCH_REGS_64
#undef SPMMBENCH_REGS_32
#undef SPMMBENCH_REGS_16
#undef SPMMBENCH_REGS_8

}  // namespace spmmbench::ptx
