#pragma once
// mma: warp-level matrix multiply-accumulate (PTX ISA, "mma.m16n8k16", "mma.m16n8k8"). D[16, 8] +=
// A[16, K] * B[K, 8], D in fp32. The first parameter is a tag: the type of A and B. Lane 4g + t
// holds
//
//   D   d[0], d[1]: row g, columns 2t, 2t + 1      d[2], d[3]: row g + 8, the same columns
//   16-bit A (K = 16)  a0: row g, k 2t ..          a1: row g + 8, k 2t ..
//   (two k a register) a2: row g, k 2t + 8 ..      a3: row g + 8, k 2t + 8 ..
//   16-bit B           b0: k 2t .., column g       b1: k 2t + 8 .., column g
//   tf32 A (K = 8)     a0: row g, k t              a1: row g + 8, k t
//                      a2: row g, k t + 4          a3: row g + 8, k t + 4
//   tf32 B             b0: k t, column g           b1: k t + 4, column g

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "ptx/tf32.cuh"

namespace spmmbench::ptx {

#define SPMMBENCH_MMA(name, Input, shape, types)                                        \
  __device__ inline void name(Input, float(&d)[4], std::uint32_t a0, std::uint32_t a1,  \
                              std::uint32_t a2, std::uint32_t a3, std::uint32_t b0,     \
                              std::uint32_t b1) {                                       \
    asm volatile("mma.sync.aligned." shape ".row.col.f32." types                        \
                 ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                       \
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));               \
  }
SPMMBENCH_MMA(mma_m16n8k16, __half, "m16n8k16", "f16.f16")
SPMMBENCH_MMA(mma_m16n8k16, __nv_bfloat16, "m16n8k16", "bf16.bf16")
SPMMBENCH_MMA(mma_m16n8k8, Tf32, "m16n8k8", "tf32.tf32")
#undef SPMMBENCH_MMA

}  // namespace spmmbench::ptx
