#pragma once
// stmatrix: a warp stores 8 x 8 matrices (PTX ISA, "Warp-level matrix store instruction:
// stmatrix").

#include <cstdint>

namespace spmmbench::ptx {

// Four 8 x 8 matrices of 16-bit elements, transposed: lane 4g + t has elements (2t, g) and
// (2t + 1, g) of each; lane i gives the shared-memory address of row i % 8 of matrix i / 8.
__device__ inline void stmatrix_x4_trans(std::uint32_t row, const std::uint32_t (&from)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row),
               "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3])
               : "memory");
}

}  // namespace spmmbench::ptx
