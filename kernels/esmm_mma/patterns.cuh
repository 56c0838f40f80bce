#pragma once
// What precedes the product: the patterns of A and B, A in lines of its strips, and the list of
// every tile of C.
//
//   A  --extract_a-->  a_lines[strip][k][32]   a_masks[panel][k]           4 bits: strips
//   B  --extract_b-->  entries (k, 8 bits), keys (panel, rank of the bits) --radix sort-->
//   both --list_tiles-->  per tile the entries that both have, in the order of B's bits

#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include "esmm_mma/shape.cuh"

namespace spmmbench::esmm_mma {

inline constexpr int kWord = 32;  // k-indices that a CTA of extract_a takes

// -0 is zero, NaN is not.
template <class T>
__device__ bool is_nonzero(T value) {
  if constexpr (sizeof(T) == 2)
    return (reinterpret_cast<const std::uint16_t&>(value) & 0x7FFF) != 0;
  else return value != 0;
}

// A CTA takes 32 columns of a panel of A, a warp those of a strip, a lane one of them. Rows from m
// on are zero.
template <class T>
__global__ void __launch_bounds__(kStripsA * 32)
    extract_a(const T* __restrict__ a, std::int64_t lda, int m, int k, int words,
              std::uint8_t* __restrict__ a_masks, T* __restrict__ lines) {
  constexpr int kPieces = kStrip * int{sizeof(T)} / kCopyBytes;  // of a line
  constexpr int kPitch = kPieces + 1;                            // 16-byte places; spreads banks
  __shared__ uint4 turned[kStripsA][kWord][kPitch];
  __shared__ std::uint32_t set[kStripsA];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t panel = blockIdx.x / static_cast<unsigned>(words);
  const int first_k = static_cast<int>(blockIdx.x % static_cast<unsigned>(words)) * kWord;
  const std::int64_t strip = panel * kStripsA + warp, first_row = strip * kStrip;
  const bool inside = first_k + lane < k;

  alignas(kCopyBytes) T column[kStrip];
  bool nonzero = false;
  const T* const source = a + first_row * lda + first_k + lane;
#pragma unroll
  for (int r = 0; r < kStrip; ++r) column[r] = inside && first_row + r < m ? source[r * lda] : T{};
#pragma unroll
  for (int r = 0; r < kStrip; ++r) nonzero |= is_nonzero(column[r]);
  const std::uint32_t ballot = __ballot_sync(~0U, nonzero);
  if (lane == 0) set[warp] = ballot;
#pragma unroll
  for (int i = 0; i < kPieces; ++i)
    turned[warp][lane][i] = reinterpret_cast<const uint4*>(column)[i];
  __syncthreads();
  if (warp == 0 && inside) {
    std::uint32_t mask = 0;
#pragma unroll
    for (int s = 0; s < kStripsA; ++s) mask |= (set[s] >> lane & 1) << s;
    a_masks[panel * k + first_k + lane] = static_cast<std::uint8_t>(mask);
  }
  // A line by as many lanes as it has pieces; those of which no bit is set are never read.
  auto* const out = reinterpret_cast<uint4*>(lines + (strip * k + first_k) * kStrip);
#pragma unroll
  for (int first = 0; first < kWord; first += 32 / kPieces) {
    const int line = first + lane / kPieces;
    if ((ballot >> line & 1) != 0)
      out[line * kPieces + lane % kPieces] = turned[warp][line][lane % kPieces];
  }
}

// The place of a mask in the Gray code, which changes one bit at a time: entries that share a chunk
// have nearly the same strips. Entries without a strip come last.
__device__ inline std::uint32_t rank_of(std::uint32_t mask) {
  mask ^= mask >> 1;
  mask ^= mask >> 2;
  mask ^= mask >> 4;
  return (mask - 1) & 0xFF;
}

inline constexpr int kExtractRows = 8;  // of B, a warp each

template <class T>
__global__ void __launch_bounds__(kExtractRows * 32)
    extract_b(const T* __restrict__ b, std::int64_t ldb, int k, int n, int panels,
              std::uint32_t* __restrict__ keys, std::uint32_t* __restrict__ entries) {
  constexpr int kOfPiece = kCopyBytes / int{sizeof(T)};
  constexpr int kPieces = kStrip / kOfPiece;  // of a strip
  constexpr int kBallots = kStripsB * kPieces / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int panel = static_cast<int>(blockIdx.x % static_cast<unsigned>(panels));
  const int row = static_cast<int>(blockIdx.x / static_cast<unsigned>(panels)) * kExtractRows +
                  static_cast<int>(threadIdx.x) / 32;
  if (row >= k) return;
  std::uint32_t mask = 0;
#pragma unroll
  for (int i = 0; i < kBallots; ++i) {
    const std::int64_t column = std::int64_t{panel} * kTileColumns + (i * 32 + lane) * kOfPiece;
    bool nonzero = false;
    if (column < n) {
      const uint4 piece = *reinterpret_cast<const uint4*>(b + row * ldb + column);
      const T* const values = reinterpret_cast<const T*>(&piece);
#pragma unroll
      for (int j = 0; j < kOfPiece; ++j) nonzero |= column + j < n && is_nonzero(values[j]);
    }
    const std::uint32_t ballot = __ballot_sync(~0U, nonzero);
#pragma unroll
    for (int s = 0; s < 32 / kPieces; ++s)
      if ((ballot >> s * kPieces & ((1U << kPieces) - 1)) != 0)
        mask |= 1U << (i * 32 / kPieces + s);
  }
  if (lane != 0) return;
  const std::int64_t at = std::int64_t{panel} * k + row;
  keys[at] = static_cast<std::uint32_t>(panel) << kStripsB | rank_of(mask);
  entries[at] = static_cast<std::uint32_t>(row) | mask << kShiftB;
}

inline constexpr int kListThreads = 256;
inline constexpr int kListItems = 4;  // entries of a thread at once

// A CTA makes the list of one tile: of B's entries those whose k A's panel has too, up to a whole
// stage with entries without strips.
template <class S>
__global__ void __launch_bounds__(kListThreads)
    list_tiles(const std::uint32_t* __restrict__ entries, const std::uint8_t* __restrict__ a_masks,
               int k, int panels_b, std::int64_t pitch, std::uint32_t* __restrict__ lists,
               TileWork* __restrict__ work) {
  using Scan = cub::BlockScan<int, kListThreads>;
  using Reduce = cub::BlockReduce<int, kListThreads>;
  __shared__ union {
    typename Scan::TempStorage scan;
    typename Reduce::TempStorage reduce;
  } shared;
  const std::int64_t tile = blockIdx.x;
  const std::uint32_t* const source = entries + tile % panels_b * k;
  const std::uint8_t* const masks = a_masks + tile / panels_b * k;
  std::uint32_t* const list = lists + tile * pitch;

  int count = 0;
  for (int first = 0; first < k; first += kListThreads * kListItems) {
    std::uint32_t kept[kListItems];
    int mine = 0;
#pragma unroll
    for (int i = 0; i < kListItems; ++i) {
      const int at = first + static_cast<int>(threadIdx.x) * kListItems + i;
      const std::uint32_t entry = at < k ? source[at] : 0;
      const std::uint32_t mask = entry >> kShiftB != 0 ? masks[entry & kIndexMask] : 0;
      kept[i] = mask != 0 ? entry | mask << kShiftA : 0;
      mine += mask != 0 ? 1 : 0;
    }
    int before, all;
    Scan(shared.scan).ExclusiveSum(mine, before, all);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kListItems; ++i)
      if (kept[i] != 0) list[count + before++] = kept[i];
    count += all;
  }
  const int stages = max(1, (count + S::kStageK - 1) / S::kStageK);
  for (int i = count + static_cast<int>(threadIdx.x); i < stages * S::kStageK; i += kListThreads)
    list[i] = 0;
  __syncthreads();
  int products = 0;
  for (int chunk = static_cast<int>(threadIdx.x); chunk < stages * S::kChunks;
       chunk += kListThreads) {
    std::uint32_t any = 0;
    for (int i = 0; i < S::kChunkK; ++i) any |= list[chunk * S::kChunkK + i];
    products += __popc(any >> kShiftB);
  }
  products = Reduce(shared.reduce).Sum(products);
  if (threadIdx.x == 0) work[tile] = {stages, products};
}

}  // namespace spmmbench::esmm_mma
