#pragma once
// Pattern extraction: one pass over each operand. A's also writes the lines that survive.

#include "esmm/operands.cuh"

namespace spmmbench::esmm {

inline constexpr int kExtractWarps = 4;
// Pieces of 16 bytes: of a line, and from a lane's line to the next, so that accesses of 8 lanes
// hit all banks.
template <class T>
inline constexpr int kPieces = kStrip* int{sizeof(T)} / kCopyBytes;
template <class T>
inline constexpr int kTransposePitch = kPieces<T> + 1;
template <class T>
inline constexpr int kExtractStrips = 32 / kPieces<T>;  // strips of B per warp

template <class T>
__device__ bool is_nonzero(T value) {
  if constexpr (sizeof(T) == 2)
    return (reinterpret_cast<const std::uint16_t&>(value) & 0x7FFF) != 0;
  else return value != 0;
}

// One warp per 32 x 32 block of A: lane l holds column l, so that a ballot is the block's word.
template <class T>
__global__ void __launch_bounds__(kExtractWarps * 32)
    extract_a(const T* __restrict__ a, std::int64_t lda, int m, int k, int words, bool all_lines,
              std::uint32_t* __restrict__ bits, T* __restrict__ lines) {
  __shared__ uint4 transpose[kExtractWarps][32][kTransposePitch<T>];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int blocks_per_strip = words / kExtractWarps;
  const int strip = static_cast<int>(blockIdx.x) / blocks_per_strip;
  const int word = static_cast<int>(blockIdx.x) % blocks_per_strip * kExtractWarps + warp;
  const int first_k = word * 32;
  const std::int64_t first_row = static_cast<std::int64_t>(strip) * kStrip;

  alignas(kCopyBytes) T column[kStrip];
  bool nonzero = false;
  const bool inside = first_k + lane < k;
  const T* source = a + first_row * lda + first_k + lane;
#pragma unroll
  for (int r = 0; r < kStrip; ++r)
    column[r] = inside && first_row + r < m ? __ldcs(source + r * lda) : T{};
#pragma unroll
  for (int r = 0; r < kStrip; ++r) nonzero |= is_nonzero(column[r]);
  const std::uint32_t set = __ballot_sync(kFullWarp, nonzero);
  if (lane == 0) bits[static_cast<std::int64_t>(strip) * words + word] = set;
  const std::uint32_t written = all_lines ? __ballot_sync(kFullWarp, inside) : set;
  if (written == 0) return;

#pragma unroll
  for (int i = 0; i < kPieces<T>; ++i)
    transpose[warp][lane][i] = reinterpret_cast<const uint4*>(column)[i];
  __syncwarp();
  // As many lanes as a line has pieces write it.
  auto* out =
      reinterpret_cast<uint4*>(lines + (static_cast<std::int64_t>(strip) * k + first_k) * kStrip);
#pragma unroll
  for (int first = 0; first < 32; first += 32 / kPieces<T>) {
    const int line = first + lane / kPieces<T>, piece = lane % kPieces<T>;
    if ((written >> line & 1) != 0) out[line * kPieces<T> + piece] = transpose[warp][line][piece];
  }
}

// The bits of a piece of 16 bytes that are set in a nonzero: all but signs, of `valid` elements.
template <class T>
__device__ uint4 magnitude_bits(std::int64_t valid) {
  constexpr int kOfWord = 4 / int{sizeof(T)}, kBits = 8 * int{sizeof(T)};
  std::uint32_t words[4] = {};
#pragma unroll
  for (int j = 0; j < 4 * kOfWord; ++j)
    if (j < valid) words[j / kOfWord] |= ((1U << (kBits - 1)) - 1) << j % kOfWord * kBits;
  return make_uint4(words[0], words[1], words[2], words[3]);
}

// One warp per 32 rows x kExtractStrips strips of B: a lane reads 16 bytes of a row.
template <class T>
__global__ void __launch_bounds__(kExtractWarps * 32)
    extract_b(const T* __restrict__ b, std::int64_t ldb, int k, int n, int strips, int words,
              std::uint32_t* __restrict__ bits) {
  constexpr int kOfPiece = kCopyBytes / int{sizeof(T)};
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int word = static_cast<int>(blockIdx.x) % (words / kExtractWarps) * kExtractWarps +
                   static_cast<int>(threadIdx.x) / 32;
  const int first_strip =
      static_cast<int>(blockIdx.x) / (words / kExtractWarps) * kExtractStrips<T>;
  const std::int64_t col = static_cast<std::int64_t>(first_strip) * kStrip + lane * kOfPiece;
  const bool inside = col < n;
  const uint4 counts = magnitude_bits<T>(n - col);

  std::uint32_t mine = 0;
#pragma unroll 16
  for (int i = 0; i < 32; ++i) {
    const int row = word * 32 + i;
    uint4 piece{};
    if (row < k && inside)
      piece =
          __ldcs(reinterpret_cast<const uint4*>(b + static_cast<std::int64_t>(row) * ldb + col));
    const std::uint32_t ballot =
        __ballot_sync(kFullWarp, ((piece.x & counts.x) | (piece.y & counts.y) |
                                  (piece.z & counts.z) | (piece.w & counts.w)) != 0);
    const std::uint32_t of_strip = ballot >> lane / kPieces<T> * kPieces<T>;
    const bool set = (of_strip & ((1U << kPieces<T>)-1)) != 0;
    mine |= static_cast<std::uint32_t>(set) << i;
  }
  const int strip = first_strip + lane / kPieces<T>;
  if (lane % kPieces<T> == 0 && strip < strips)
    bits[static_cast<std::int64_t>(strip) * words + word] = mine;
}

}  // namespace spmmbench::esmm
