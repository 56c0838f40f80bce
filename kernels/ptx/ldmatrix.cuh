#pragma once
// ldmatrix: a warp loads 8 x 8 matrices as mma takes them (PTX ISA, "Warp-level matrix load
// instruction: ldmatrix").

#include <cstdint>

namespace spmmbench::ptx {

// Four 8 x 8 matrices of 16-bit elements, transposed: lane i gives the shared-memory address of row
// i % 8 of matrix i / 8; lane 4g + t gets elements (2t, g) and (2t + 1, g) of each.
__device__ inline void ldmatrix_x4_trans(std::uint32_t (&to)[4], std::uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}

}  // namespace spmmbench::ptx
