#pragma once
// The rows of B that a block of gather_mma keeps in shared memory, 16 bytes each:
//
//   16 bits             8 columns; a second plane has 8 more
//   8 bits, N <= 8      8 columns in fp16, those of even number before the others; behind all of
//                       them the same in 8 bits, twice: octets 0 and 2 read the first 8 bytes,
//                       1 and 3 the second
//   8 bits, N up to 16  16 columns

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <type_traits>

#include "format/slot_streams.hpp"
#include "ptx/cvt.cuh"
#include "ptx/prmt.cuh"
#include "ptx/stmatrix.cuh"
#include "spmmbench/device.hpp"

namespace spmmbench::gather_mma {

using Streams = SlotStreams;
inline constexpr int kWarps = 16;
inline constexpr int kThreads = 32 * kWarps;
inline constexpr int kRowBytes = 16;  // of B
inline constexpr int kPlaneColumns = 8;
inline constexpr int kPlaneBytes = Streams::kMostChunk * kRowBytes;
inline constexpr unsigned kMoveBytes = Streams::kOctet * kRowBytes;  // between rows of B of a slot
static_assert(Streams::lines(Streams::kMostChunk) * kMoveBytes == kPlaneBytes);

template <class T>
inline constexpr bool kFp8 = std::is_same_v<T, __nv_fp8_e4m3>;
// Planes of 8 columns that lie in shared memory one behind the other.
template <class T, int kPlanes>
inline constexpr int kImages = kFp8<T> ? 1 : kPlanes;

// Whether B lies there both in fp16 and in 8 bits.
template <class T, int kPlanes>
inline constexpr bool kHasBoth = kFp8<T>&& kPlanes == 1;
__host__ __device__ constexpr int image_bytes(int chunk_cols) {
  return Streams::lines(chunk_cols) * static_cast<int>(kMoveBytes);
}

// Where a block's rows of B go.
struct RowsOfB {
  std::int64_t first;  // of B
  int count;           // zeros behind them, which zeros of A may name, up to
  int padded;          // a multiple of 8; where there are several images, to the end of the first
  int second;          // bytes from the first copy to the second; 0: none
  int other;           // bytes from all copies in fp16 to those in 8 bits; 0: none

  // Lines have the same turns after so many rows.
  static constexpr int kPeriod = 16 * Streams::kOctet;
  // In the second copy, after its beginning.
  __device__ static unsigned second_place(int row) {
    constexpr int kOctet = Streams::kOctet;
    const int line = row / kOctet;
    const int slot = Streams::Turns::second_slot(row % kOctet, Streams::Turns::of_line(line));
    return line * kMoveBytes + slot * kRowBytes;
  }
};

// Eight bytes of one row of 8 bits from `column` on. Zeros in columns that B does not have: a
// product with them reaches the sums of others.
__device__ inline uint2 eight_columns(const DenseView& b, std::int64_t row, std::int64_t column) {
  if (column >= b.cols) return {};
  uint2 out =
      *reinterpret_cast<const uint2*>(static_cast<const char*>(b.data) + row * b.ld + column);
  const auto inside = static_cast<int>(min(b.cols - column, std::int64_t{kPlaneColumns}));
  const auto mask = [](int bytes) { return bytes >= 4 ? ~0U : (1U << (8 * max(bytes, 0))) - 1; };
  out.x &= mask(inside);
  out.y &= mask(inside - 4);
  return out;
}

// Row-major B's columns column .. column + 8 * kPlanes. In 16 bits, columns past the last hold
// anything.
template <class T, int kPlanes>
__device__ uint4 row_of_image(const DenseView& b, std::int64_t row, std::int64_t column,
                              int image) {
  if constexpr (kFp8<T>) {
    const uint2 first = eight_columns(b, row, column);
    const uint2 second = kPlanes == 1 ? first : eight_columns(b, row, column + kPlaneColumns);
    return make_uint4(first.x, first.y, second.x, second.y);
  } else {
    column += image * kPlaneColumns;
    if (column >= b.cols) return {};
    return *reinterpret_cast<const uint4*>(static_cast<const T*>(b.data) + row * b.ld + column);
  }
}
template <class T, int kPlanes>
__device__ void load_rows(const DenseView& b, const RowsOfB& rows, std::int64_t column, char* to) {
  constexpr int kCount = kImages<T, kPlanes>;
#pragma unroll 4
  for (int i = threadIdx.x; i < rows.padded * kCount; i += kThreads) {
    const int k = i / kCount, image = i % kCount;
    const uint4 row = k < rows.count ? row_of_image<T, kPlanes>(b, rows.first + k, column, image)
                                     : make_uint4(0, 0, 0, 0);
    const auto store = [&](char* first, const uint4& sixteen) {
      *reinterpret_cast<uint4*>(first + k * kRowBytes) = sixteen;
      if (kCount == 1 && rows.second > 0)
        *reinterpret_cast<uint4*>(first + rows.second + RowsOfB::second_place(k)) = sixteen;
    };
    if constexpr (kHasBoth<T, kPlanes>) {
      const uint2 even = ptx::cvt_rn_f16x2_e4m3x2(ptx::prmt(row.x, row.y, 0x6420)),
                  odd = ptx::cvt_rn_f16x2_e4m3x2(ptx::prmt(row.x, row.y, 0x7531));
      store(to, make_uint4(even.x, even.y, odd.x, odd.y));
      store(to + rows.other, row);
    } else {
      store(to + image * kPlaneBytes, row);
    }
  }
}

// What lane 4g + t loads of column-major B: eight rows, as pairs of 16 bits.
//
//   16 bits             column g
//   8 bits, N up to 16  columns 2g and 2g + 1: two bytes of a row are 16 bits
//   8 bits, N <= 8      one of two columns 2p and 2p + 1 with p = g % 4, the other one is lane l ^
//                       16's. Both lanes then have both: the row's first and its second eight bytes
template <class T, int kPlanes>
class EightRows {
  static constexpr int kLoads = kFp8<T> ? kPlanes : 2;  // of 8 bytes

 public:
  __device__ void load(const DenseView& b, std::int64_t row, std::int64_t column, int g) {
    const auto* const from = static_cast<const T*>(b.data) + row;
    if constexpr (!kFp8<T>) {
      if (column + g >= b.cols) return;
      const uint4 eight = *reinterpret_cast<const uint4*>(from + (column + g) * b.ld);
      loaded_[0] = make_uint2(eight.x, eight.y);
      loaded_[1] = make_uint2(eight.z, eight.w);
    } else {
#pragma unroll
      for (int i = 0; i < kLoads; ++i) {
        const std::int64_t n = column + (kPlanes == 1 ? g % 4 * 2 + g / 4 : 2 * g + i);
        if (n < b.cols) loaded_[i] = *reinterpret_cast<const uint2*>(from + n * b.ld);
      }
    }
  }
  // All lanes of a warp call it.
  __device__ void pairs(std::uint32_t (&to)[4], int g) const {
    if constexpr (!kFp8<T>) {
      to[0] = loaded_[0].x, to[1] = loaded_[0].y, to[2] = loaded_[1].x, to[3] = loaded_[1].y;
    } else {
      const uint2 other = kPlanes == 1 ? of_other_lane() : loaded_[kLoads - 1];
      const bool is_left = kPlanes > 1 || g < 4;  // loaded_[0] is the left one of two columns
      const std::uint32_t first = is_left ? 0x5140 : 0x1504, last = is_left ? 0x7362 : 0x3726;
      to[0] = ptx::prmt(loaded_[0].x, other.x, first);
      to[1] = ptx::prmt(loaded_[0].x, other.x, last);
      to[2] = ptx::prmt(loaded_[0].y, other.y, first);
      to[3] = ptx::prmt(loaded_[0].y, other.y, last);
    }
  }

  // Of one column in fp16.
  __device__ void halves(std::uint32_t (&to)[4]) const {
    const uint2 first = ptx::cvt_rn_f16x2_e4m3x2(loaded_[0].x),
                last = ptx::cvt_rn_f16x2_e4m3x2(loaded_[0].y);
    to[0] = first.x, to[1] = first.y, to[2] = last.x, to[3] = last.y;
  }

 private:
  __device__ uint2 of_other_lane() const {
    constexpr int kOther = 16;
    return make_uint2(__shfl_xor_sync(~0U, loaded_[0].x, kOther),
                      __shfl_xor_sync(~0U, loaded_[0].y, kOther));
  }
  uint2 loaded_[kLoads] = {};
};

// Four matrices of eight rows by eight elements of 16 bits: lane 4g + t has four pairs of rows of
// element g. Its pair j + t goes to matrix j, so that the 8 rows of a matrix lie in different
// banks. `inside`: what lies behind so many rows of the lane becomes zero.
struct Matrices {
  std::uint32_t of[4];

  __device__ Matrices(std::uint32_t (&pairs)[4], int inside) {
    const int t = threadIdx.x % 4;
    if (inside < Streams::kOctet) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int left = inside - 2 * j;
        pairs[j] = left >= 2 ? pairs[j] : left == 1 ? pairs[j] & 0xFFFFU : 0;
      }
    }
    const bool by_one = t % 2 != 0, by_two = t >= 2;
    const std::uint32_t turned[4] = {by_one ? pairs[1] : pairs[0], by_one ? pairs[2] : pairs[1],
                                     by_one ? pairs[3] : pairs[2], by_one ? pairs[0] : pairs[3]};
#pragma unroll
    for (int j = 0; j < 4; ++j) of[j] = by_two ? turned[(j + 2) % 4] : turned[j];
  }
  __device__ void store(std::uint32_t to) const { ptx::stmatrix_x4_trans(to, of); }
};

// The same of column-major B. A warp transposes 32 rows at a time: lane 4g + t loads rows 8t ..
// 8t + 7.
template <class T, int kPlanes>
__device__ void load_columns(const DenseView& b, const RowsOfB& rows, std::int64_t column,
                             std::uint32_t to) {
  constexpr int kBlockRows = 32, kAhead = 8, kCount = kImages<T, kPlanes>;
  constexpr int kStep = kWarps / kCount * kBlockRows;  // rows from a warp's block to its next one
  static_assert(kStep % RowsOfB::kPeriod == 0);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int g = lane / 4, t = lane % 4;
  // The row that this lane names: of matrix lane / 8, row lane % 8 = 2q + e, from lanes with t = q.
  const int q = lane % 8 / 2, named = 8 * q + 2 * ((lane / 8 + q) % 4) + lane % 2;
  const int first_k = warp / kCount * kBlockRows, image = warp % kCount;
  column += image * kPlaneColumns;
  std::uint32_t second = to + rows.second + RowsOfB::second_place(first_k + named);
  to += image * kPlaneBytes + (first_k + named) * kRowBytes;
  const auto store = [&](const Matrices& matrices, int bytes) {
    matrices.store(to + bytes);
    if (kCount == 1 && rows.second > 0) matrices.store(second + bytes);
  };
  for (int first = first_k; first < rows.padded; first += kAhead * kStep) {
    EightRows<T, kPlanes> loaded[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int k = first + i * kStep + 8 * t;
      if (k < rows.count) loaded[i].load(b, rows.first + k, column, g);
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int k = first + i * kStep;
      if (k >= rows.padded) break;
      const int inside = rows.count - (k + 8 * t);  // of this lane's rows
      std::uint32_t pairs[4];
      loaded[i].pairs(pairs, g);
      if constexpr (kHasBoth<T, kPlanes>) {
        std::uint32_t halves[4];
        loaded[i].halves(halves);
        store(Matrices(halves, inside), i * kStep * kRowBytes);
        store(Matrices(pairs, inside), rows.other + i * kStep * kRowBytes);
      } else {
        store(Matrices(pairs, inside), i * kStep * kRowBytes);
      }
    }
    to += kAhead * kStep * kRowBytes;
    second += kAhead * kStep * kRowBytes;
  }
}

}  // namespace spmmbench::gather_mma
