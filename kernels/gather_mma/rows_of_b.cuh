#pragma once
// The rows of B that a block of gather_mma keeps in shared memory, 16 bytes each:
//
//   16 bits             8 columns; a second plane has 8 more
//   8 bits, N <= 8      8 columns in fp16, or in 8 bits, twice: octets 0 and 2 read the first 8
//                       bytes, 1 and 3 the second; or all rows in fp16 and behind them in 8 bits
//   8 bits, N up to 16  16 columns

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <type_traits>

#include "gather_mma/format.hpp"
#include "ptx/cvt.cuh"
#include "ptx/prmt.cuh"
#include "ptx/st_shared.cuh"
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

// In 8 bits and for N <= 8, kEights of the four steps of a quad read B in 8 bits, the others in
// fp16. Whether B lies there in both.
template <int kEights>
inline constexpr bool kHasBoth = kEights > 0 && kEights < Streams::kQuadSteps;
__host__ __device__ constexpr int image_bytes(int chunk_cols) {
  return Streams::lines(chunk_cols) * static_cast<int>(kMoveBytes);
}

// Where a block's rows of B go.
struct RowsOfB {
  std::int64_t first;  // of B
  int count;           // zeros behind them, which zeros of A may name, up to
  int padded;          // a multiple of 8; where there are several images, to the end of the first
  int second;          // bytes from the first copy to the second; 0: none
  int second_rows;     // which the second copy has, the first ones
  int other;           // bytes from all copies in fp16 to those in 8 bits; 0: none

  // Lines have the same turns after this many rows.
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

// A row of 8 columns of 8 bits, for N <= 8, in both halves of 16 bytes.
struct TwiceEight {
  uint4 row;

  __device__ uint4 in_halves() const {
    const uint2 first = ptx::cvt_rn_f16x2_e4m3x2(row.x), last = ptx::cvt_rn_f16x2_e4m3x2(row.y);
    return make_uint4(first.x, first.y, last.x, last.y);
  }
  // In all forms. `first`, `second`: places in the first and the second copy of the first form;
  // `other`: of RowsOfB. kOffset: bytes behind these.
  template <int kEights, int kOffset = 0>
  __device__ void store(std::uint32_t first, std::uint32_t second, bool has_second,
                        int other) const {
    if constexpr (kEights < Streams::kQuadSteps) {
      const uint4 halves = in_halves();
      ptx::st_shared_v4<kOffset>(first, halves);
      if (has_second) ptx::st_shared_v4<kOffset>(second, halves);
    }
    if constexpr (kEights > 0) {
      const int behind = kHasBoth<kEights> ? other : 0;
      ptx::st_shared_v4<kOffset>(first + behind, row);
      if (has_second) ptx::st_shared_v4<kOffset>(second + behind, row);
    }
  }
};

template <class T, int kPlanes, int kEights>
__device__ void load_rows(const DenseView& b, const RowsOfB& rows, std::int64_t column,
                          std::uint32_t to) {
  constexpr int kCount = kImages<T, kPlanes>;
#pragma unroll 4
  for (int i = threadIdx.x; i < rows.padded * kCount; i += kThreads) {
    const int k = i / kCount, image = i % kCount;
    const uint4 row = k < rows.count ? row_of_image<T, kPlanes>(b, rows.first + k, column, image)
                                     : make_uint4(0, 0, 0, 0);
    const std::uint32_t place = k * kRowBytes;
    if constexpr (kFp8<T> && kPlanes == 1) {
      TwiceEight{row}.store<kEights>(to + place, to + rows.second + RowsOfB::second_place(k),
                                     k < rows.second_rows, rows.other);
    } else {
      ptx::st_shared_v4(to + image * kPlaneBytes + place, row);
      if (kCount == 1 && k < rows.second_rows)
        ptx::st_shared_v4(to + rows.second + RowsOfB::second_place(k), row);
    }
  }
}

// Column-major B in 8 bits, N <= 8: a thread transposes four rows of eight columns at a time.
template <int kEights>
class FourRows {
  static constexpr unsigned kRows = 4, kLineRows = Streams::kOctet;
  static constexpr int kStep = kThreads * kRows;                            // rows of all threads
  static constexpr int kSteps = (Streams::kMostChunk + kStep - 1) / kStep;  // at most
  static_assert(kStep % RowsOfB::kPeriod == 0 && kSteps == 2);

 public:
  __device__ FourRows(const DenseView& b, const RowsOfB& rows, std::int64_t column,
                      std::uint32_t to)
      : second_rows_(rows.second_rows - static_cast<int>(threadIdx.x * kRows)),
        other_(rows.other),
        inside_(rows.count - static_cast<int>(threadIdx.x * kRows)),
        padded_(rows.padded - static_cast<int>(threadIdx.x * kRows)),
        columns_(static_cast<int>(min(b.cols - column, std::int64_t{kPlaneColumns}))),
        ld_(b.ld),
        from_(static_cast<const char*>(b.data) + column * b.ld + rows.first + threadIdx.x * kRows) {
    // Eight lanes side by side have 32 rows. Each stores its four in another order, so that they
    // are in different banks.
    const unsigned first = threadIdx.x / 2 % kRows;
    const unsigned line = to + threadIdx.x / 2 * kMoveBytes;
    const unsigned turn = Streams::Turns::of_line(threadIdx.x / 2 % (RowsOfB::kPeriod / kLineRows));
#pragma unroll
    for (unsigned i = 0; i < kRows; ++i) {
      const unsigned slot = threadIdx.x % 2 * kRows + (first + i) % kRows;
      first_[i] = line + slot * kRowBytes;
      second_[i] = rows.second + line + (slot + turn) % kLineRows * kRowBytes;
    }
    pairs_[0] = two_bytes(first);
    pairs_[1] = two_bytes((first + 2) % kRows);
  }

  __device__ void load() {
    const char* from = from_;
    if (columns_ == kPlaneColumns) {
#pragma unroll
      for (int j = 0; j < kPlaneColumns; ++j, from += ld_) load_column(from, j);
    } else {
#pragma unroll
      for (int j = 0; j < kPlaneColumns; ++j, from += ld_)
        if (j < columns_) load_column(from, j);
    }
    clear_behind<0>();
    clear_behind<1>();
  }
  __device__ void store() const {
    store_step<0>();
    store_step<1>();
  }

 private:
  // The selector of bytes `first` and the one behind it of two words.
  __device__ static std::uint32_t two_bytes(unsigned first) {
    return 0x5140 + first * 0x1111 - (first == kRows - 1 ? 0x4400 : 0);
  }
  __device__ void load_column(const char* from, int j) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
      if (step * kStep < inside_)
        four_[step][j] = *reinterpret_cast<const std::uint32_t*>(from + step * kStep);
  }
  // What lies behind the last row is not zero.
  template <int kAt>
  __device__ void clear_behind() {
    const int inside = inside_ - kAt * kStep;
    if (inside <= 0 || inside >= static_cast<int>(kRows)) return;
#pragma unroll
    for (std::uint32_t& four : four_[kAt]) four &= (1U << (8 * inside)) - 1;
  }
  template <int kAt>
  __device__ void store_step() const {
    if (kAt * kStep >= padded_) return;
    const std::uint32_t(&four)[kPlaneColumns] = four_[kAt];
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      std::uint32_t two[kPlaneColumns / 2];  // rows of two columns
#pragma unroll
      for (int j = 0; j < kPlaneColumns / 2; ++j)
        two[j] = ptx::prmt(four[2 * j], four[2 * j + 1], pairs_[pair]);
      store_row<kAt>(2 * pair, two, 0x5410, 0x1054);
      store_row<kAt>(2 * pair + 1, two, 0x7632, 0x3276);
    }
  }
  // `row`: one of two, as a selector, also for the words the other way round, so that no word is
  // copied to stand twice in a vector.
  template <int kAt>
  __device__ void store_row(int i, const std::uint32_t (&two)[kPlaneColumns / 2], std::uint32_t row,
                            std::uint32_t row_of_turned) const {
    const TwiceEight eights{make_uint4(
        ptx::prmt(two[0], two[1], row), ptx::prmt(two[2], two[3], row),
        ptx::prmt(two[1], two[0], row_of_turned), ptx::prmt(two[3], two[2], row_of_turned))};
    eights.store<kEights, kAt * kStep * kRowBytes>(first_[i], second_[i],
                                                   kAt * kStep < second_rows_, other_);
  }

  int second_rows_, other_;
  int inside_, padded_;  // rows from the thread's first one on, as second_rows_
  int columns_;
  std::int64_t ld_;
  const char* from_;
  std::uint32_t first_[kRows], second_[kRows];  // places of the rows, in the order of storing
  std::uint32_t pairs_[2];                      // selectors of two rows each
  std::uint32_t four_[kSteps][kPlaneColumns] = {};
};

// What lane 4g + t loads of column-major B: eight rows, as pairs of 16 bits.
//
//   16 bits             column g
//   8 bits, N up to 16  columns 2g and 2g + 1: two bytes of a row are 16 bits
template <class T>
class EightRows {
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
      for (int i = 0; i < 2; ++i) {
        const std::int64_t n = column + 2 * g + i;
        if (n < b.cols) loaded_[i] = *reinterpret_cast<const uint2*>(from + n * b.ld);
      }
    }
  }
  __device__ void pairs(std::uint32_t (&to)[4]) const {
    if constexpr (!kFp8<T>) {
      to[0] = loaded_[0].x, to[1] = loaded_[0].y, to[2] = loaded_[1].x, to[3] = loaded_[1].y;
    } else {
      constexpr std::uint32_t kFirst = 0x5140, kLast = 0x7362;
      to[0] = ptx::prmt(loaded_[0].x, loaded_[1].x, kFirst);
      to[1] = ptx::prmt(loaded_[0].x, loaded_[1].x, kLast);
      to[2] = ptx::prmt(loaded_[0].y, loaded_[1].y, kFirst);
      to[3] = ptx::prmt(loaded_[0].y, loaded_[1].y, kLast);
    }
  }

 private:
  uint2 loaded_[2] = {};
};

// Four matrices of eight rows by eight elements of 16 bits: lane 4g + t has four pairs of rows of
// element g. Its pair j + t goes to matrix j, so that the 8 rows of a matrix lie in different
// banks. `inside`: what lies behind this many rows of the lane becomes zero.
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
    EightRows<T> loaded[kAhead];
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
      loaded[i].pairs(pairs);
      store(Matrices(pairs, inside), i * kStep * kRowBytes);
    }
    to += kAhead * kStep * kRowBytes;
    second += kAhead * kStep * kRowBytes;
  }
}

}  // namespace spmmbench::gather_mma
