#pragma once
// Row-major B in 8 bits as wgmma's first operand. wgmma takes 8-bit operands along K only, and in
// shared memory B does not lie so, but the first operand may come from registers:
// C^T = B^T * A^T.
//
//   128 of k, a line each           a thread's registers        wgmma
//     k 0  [column 0 | 1 | ... ]    four k of a column each     64 columns x 32 of k
//     k 1  [column 0 | 1 | ... ]
//     ...
//
// ldmatrix gives a thread two neighbouring columns of two neighbouring k. With those of the next
// two k, four bytes of either column are a permutation of bytes away. Where columns are few, the
// registers are written back, a line of k for each column.

#include <cuda_runtime.h>

#include <cstdint>

#include "dense_cluster/split.hpp"
#include "ptx/cuda_ptx.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/prmt.cuh"

namespace spmmbench::dense_cluster {

inline constexpr int kWarpgroup = 128;  // threads

// A thread's part of the tiles of B. Each warp has 16 columns; rows g and g + 8 of the operand are
// its columns 2g and 2g + 1.
//
// The eight rows of a matrix lie in different banks: of each four k, a matrix has the first two in
// its rows 0 to 3 and the last two in its rows 4 to 7, or the other way round.
template <int kLine>  // bytes, swizzled
class ColumnsOfB {
 public:
  static constexpr int kBlockK = 32;  // that four matrices have, and one wgmma
  static constexpr int kBlocks = kLineBytes / kBlockK;
  static constexpr int kWarpColumns = 16;
  using Registers = std::uint32_t[kBlocks][4];

  __device__ explicit ColumnsOfB(unsigned thread) {
    const unsigned warp = thread / 32, lane = thread % 32;
    const unsigned matrix = lane / 8, row = lane % 8;  // whose address this lane gives
    const unsigned k = matrix / 2 * 16 + row / 2 * 4 + (matrix % 2 ^ row / 4) * 2 + row % 2;
    const unsigned start = k * kLine;
    from_ = start + (warp * kPiece ^ (start >> 3 & (kLine - kPiece)));
    even_ = lane % 4 < 2 ? 0x6420 : 0x2064;
    odd_ = even_ + 0x1111;
  }

  // Columns 2g and 2g + 1 of block `block`, in turn: k 4t to 4t + 3, then the same + 16.
  __device__ void read_block(std::uint32_t (&to)[4], const char* tile, int block) const {
    const auto start = static_cast<std::uint32_t>(__cvta_generic_to_shared(tile));
    std::uint32_t pairs[4];
    ptx::ldmatrix_x4_trans(pairs, start + from_ + block * kBlockK * kLine);
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      to[i] = ptx::prmt(pairs[i], pairs[i + 1], even_);
      to[i + 1] = ptx::prmt(pairs[i], pairs[i + 1], odd_);
    }
  }
  __device__ void read(Registers& to, const char* tile) const {
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) read_block(to[block], tile, block);
  }

 private:
  static constexpr int kPiece = 16;  // bytes of a matrix's row, and of what a swizzle moves

  std::uint32_t from_;
  std::uint32_t even_, odd_;  // bytes of a column: selectors of ptx::prmt
};

// Turns a tile of row-major B, a line of kColumns for each k, into one that has a line of k for
// each column, in its place, in the swizzle of 128 bytes. The threads of a CTA's only warpgroup
// call it: each warp has some columns and some k.
template <int kColumns>
__device__ void turn_columns(char* tile) {
  using Columns = ColumnsOfB<kColumns>;
  constexpr int kWarps = kWarpgroup / 32, kPieces = kColumns / Columns::kWarpColumns;
  constexpr int kBlocks = Columns::kBlocks * kPieces / kWarps;  // of a warp
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const unsigned piece = warp % kPieces, first = warp / kPieces * kBlocks;
  const Columns columns(32 * piece + lane);
  std::uint32_t four_of_k[kBlocks][4];
#pragma unroll
  for (int i = 0; i < kBlocks; ++i) columns.read_block(four_of_k[i], tile, first + i);
  __barrier_sync_count(1, kWarpgroup);
#pragma unroll
  for (int i = 0; i < kBlocks; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const unsigned column = piece * Columns::kWarpColumns + lane / 4 * 2 + j % 2;
      const unsigned k = (first + i) * Columns::kBlockK + j / 2 * 16 + lane % 4 * 4;
      *reinterpret_cast<std::uint32_t*>(tile + column * kLineBytes + (k ^ column % 8 * 16)) =
          four_of_k[i][j];
    }
  ptx::fence_proxy_async(ptx::space_shared);  // wgmma reads what was written here
  __barrier_sync_count(1, kWarpgroup);
}

}  // namespace spmmbench::dense_cluster
