#pragma once
// wgmma under a predicate, with A in registers and 32 columns (ptx/wgmma.cuh has the layouts).

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "ptx/tf32.cuh"
#include "ptx/wgmma.cuh"

namespace spmmbench::ptx {

// d += a * b where `condition` is not zero; it is the same in the whole warpgroup. A is the
// fragment of mma.m16n8k16, for tf32 of mma.m16n8k8, of each warp's 16 rows. B is MN-major in 16
// bits and K-major in tf32.
template <class Input>
__device__ void wgmma_mma_async_m64n32_if(std::uint32_t condition, float (&d)[16],
                                          const std::uint32_t (&a)[4], std::uint64_t b) = delete;

#define SPMMBENCH_WGMMA_IF(Input, shape_and_types, transposed)                                    \
  template <>                                                                                     \
  __device__ inline void wgmma_mma_async_m64n32_if<Input>(                                        \
      std::uint32_t condition, float(&d)[16], const std::uint32_t(&a)[4], std::uint64_t b) {      \
    asm volatile(                                                                                 \
        "{\n.reg .pred p;\nsetp.ne.u32 p, %21, 0;\n"                                              \
        "@p wgmma.mma_async.sync.aligned." shape_and_types                                        \
        " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "               \
        "{%16, %17, %18, %19}, %20, 1, 1, 1" transposed ";\n}\n"                                  \
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),     \
          "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), \
          "+f"(d[14]), "+f"(d[15])                                                                \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(condition));                    \
  }
SPMMBENCH_WGMMA_IF(__half, "m64n32k16.f32.f16.f16", ", 1")
SPMMBENCH_WGMMA_IF(__nv_bfloat16, "m64n32k16.f32.bf16.bf16", ", 1")
SPMMBENCH_WGMMA_IF(Tf32, "m64n32k8.f32.tf32.tf32", "")
#undef SPMMBENCH_WGMMA_IF

}  // namespace spmmbench::ptx
