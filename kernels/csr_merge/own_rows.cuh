#pragma once
// Device code of csr_merge for long rows that are about as long as each other, and one lane's
// columns. Each lane has a row of its own, and all rows of a CTA are walked together:
//
//   row 0    x  x  x  x ...     warp, per tile: its rows' next 32 nonzeros -> shared memory, row by
//   row 1    x  x  x  x ...       row; then lane r walks those of row r
//   ...                         CTA: a barrier every eight nonzeros
//   row 255  x  x  x  x ...
//
// Columns rise in all rows alike, so the rows of B that a CTA wants at a time lie close together:
// its lanes share their cache lines, in the L1 cache of the multiprocessor.

#include "csr_merge/device.cuh"
#include "ptx/griddepcontrol.cuh"

namespace spmmbench::csr_merge {

constexpr int kOwnTile = 32;  // nonzeros of a row that are staged: a lane copies one
constexpr int kOwnCtasPerSm = 2;
constexpr int kTogether = 8;  // nonzeros of a row between two barriers

// What a warp stages. One entry more than a tile, so that lanes read different banks.
template <class Sum>
struct OwnTile {
  Entry<Sum> entries[32][kOwnTile + 1];
};
template <class Sum>
constexpr std::size_t own_bytes() {
  return kThreads / 32 * sizeof(OwnTile<Sum>);
}

__global__ void longest_row(const __grid_constant__ DeviceCsr a, unsigned long long* longest) {
  std::int64_t most = 0;
  for (std::int64_t row = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; row < a.rows;
       row += std::int64_t{gridDim.x} * kThreads)
    most = max(most, static_cast<std::int64_t>(a.row_ptr[row + 1] - a.row_ptr[row]));
  atomicMax(longest, static_cast<unsigned long long>(most));
}

template <class TB>
__global__ void __launch_bounds__(kThreads, kOwnCtasPerSm)
    own_rows_kernel(const __grid_constant__ DeviceCsr a, const TB* __restrict__ b,
                    std::uint32_t row_step, float b_scale, const __grid_constant__ Rows c,
                    std::int64_t n) {
  using Sum = SumOf<TB>;
  constexpr int kCount = kPerPiece<TB>;
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ int longest_of_warps[kThreads / 32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  auto& tile = reinterpret_cast<OwnTile<Sum>*>(memory)[warp];
  const std::int64_t row = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t first = row < a.rows ? a.row_ptr[row] : 0;
  const int count = row < a.rows ? static_cast<int>(a.row_ptr[row + 1] - first) : 0;
  const int of_warp = __reduce_max_sync(kWarp, count);
  if (lane == 0) longest_of_warps[warp] = of_warp;
  __syncthreads();
  int longest = 0;
  for (const int of_other : longest_of_warps) longest = max(longest, of_other);

  const auto* const pieces = reinterpret_cast<const Piece<TB>*>(b);
  const auto* const values = static_cast<const TB*>(a.values);
  Sum sums[kCount] = {};
  bool waited = false;
  for (int at = 0; at < longest; at += kOwnTile) {
    __syncwarp();  // the tile before was read
#pragma unroll 8
    for (int r = 0; r < 32; ++r) {
      const std::int64_t from = __shfl_sync(kWarp, first, r) + at + lane;
      if (at + lane >= __shfl_sync(kWarp, count, r)) continue;
      Sum value = to_sum(load_once(values + from));
      if constexpr (sizeof(TB) == 1) value *= a.scale * b_scale;
      tile.entries[r][lane] = {static_cast<std::uint32_t>(__ldcs(a.col_idx + from)) * row_step,
                               value};
    }
    __syncwarp();
    if (!waited) ptx::griddepcontrol_wait();  // until here only A was read
    waited = true;
    const int mine = min(count - at, kOwnTile);
#pragma unroll 1
    for (int begin = 0; begin < min(longest - at, kOwnTile); begin += kTogether) {
      if (begin < mine) {
        Piece<TB> raw[kTogether];
#pragma unroll
        for (int u = 0; u < kTogether; ++u)
          raw[u] = __ldca(pieces + tile.entries[lane][min(begin + u, mine - 1)].b_piece);
#pragma unroll
        for (int u = 0; u < kTogether; ++u) {
          Sum x[kCount];
          unpack(raw[u], x, TB{});
          const Sum value = tile.entries[lane][begin + u].value;
#pragma unroll
          for (int j = 0; j < kCount; ++j)
            if (begin + u < mine) sums[j] += value * x[j];
        }
      }
      __syncthreads();
    }
  }
  if (!waited) ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  if (row < a.rows) Columns<Sum, kCount, 1>{0, n}.store(c, row, sums);
}

}  // namespace spmmbench::csr_merge
