#pragma once
// wgmma of 192 columns, as ptx/wgmma.cuh has it for powers of two.

#include "ptx/wgmma.cuh"

namespace spmmbench::ptx {

// clang-format off
#define SPMMBENCH_REGS_96 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define SPMMBENCH_D4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SPMMBENCH_D16(i) SPMMBENCH_D4(i), SPMMBENCH_D4(i + 4), SPMMBENCH_D4(i + 8), SPMMBENCH_D4(i + 12)
#define SPMMBENCH_D48(i) SPMMBENCH_D16(i), SPMMBENCH_D16(i + 16), SPMMBENCH_D16(i + 32)
#define SPMMBENCH_WGMMA_192(Input, types)                                                             \
  template <>                                                                                         \
  __device__ inline void wgmma_mma_async<Input, Major::k, 192>(                                       \
      float (&d)[96], std::uint64_t a, std::uint64_t b, int accumulate) {                             \
    asm volatile(                                                                                     \
        "{\n.reg .pred p;\nsetp.ne.b32 p, %98, 0;\n"                                                 \
        "wgmma.mma_async.sync.aligned.m64n192k16.f32." types " {" SPMMBENCH_REGS_96                   \
        "}, %96, %97, p, 1, 1, 0, 0;\n}\n"                                                           \
        : SPMMBENCH_D48(0), SPMMBENCH_D48(48)                                                         \
        : "l"(a), "l"(b), "r"(accumulate));                                                           \
  }
SPMMBENCH_WGMMA_192(__half, "f16.f16")
SPMMBENCH_WGMMA_192(__nv_bfloat16, "bf16.bf16")
// clang-format on

#undef SPMMBENCH_WGMMA_192
#undef SPMMBENCH_D48
#undef SPMMBENCH_D16
#undef SPMMBENCH_D4
#undef SPMMBENCH_REGS_96

}  // namespace spmmbench::ptx
