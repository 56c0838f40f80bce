#pragma once
// What the ESMM kernels share: the operands as their patterns see them.
//
// A strip is 32 rows of A or 32 columns of B. Bit k of a strip says that index k of the inner
// dimension holds a nonzero there (-0 is zero, NaN is not), 32 bits to a word. A strip's words are
// padded with zero words to whole chunks. A byte of these words is the source's pattern byte.
//
// A is copied strip by strip into K-major lines, a_lines[strip][k][row in strip]: read in place, a
// column of 32 rows touches 32 sectors for 4 bytes each. Only lines whose bit is set are written;
// no other line is ever read. B's lines already lie so: 32 columns of a row are 128 bytes.

#include <cuda_pipeline_primitives.h>

#include <cstdint>

namespace spmmbench::esmm {

inline constexpr int kStrip = 32;                // rows of A, columns of B
inline constexpr int kLineBytes = kStrip * 4;    // in fp32
inline constexpr int kCopyBytes = 16;            // of one cp.async; eight lanes copy a line
inline constexpr int kChunkWords = 32;           // one word per lane
inline constexpr int kChunk = kChunkWords * 32;  // k-indices whose bits a warp reads at once
inline constexpr unsigned kFullWarp = 0xFFFFFFFFU;

struct Operands {
  const void* a_lines;          // [strips_a][k][kStrip]
  const std::uint32_t* a_bits;  // [strips_a][words]
  const void* b;                // [k][ldb]
  const std::uint32_t* b_bits;  // [strips_b][words]
  void* c;                      // [m][ldc]
  std::int64_t ldc;
  unsigned ldb_bytes;
  int m, n, k;
  int strips_a, strips_b;
  int words;  // per strip, a multiple of kChunkWords
};

__host__ __device__ constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

// Where a lane's part of a 32 x 32 tile lies: rows 4 * row + {0..3} and 16 + 4 * row + {0..3},
// columns 4 * col + {0..3}. Neighbours in lane bit 0 share their rows and in bit 1 their columns,
// so that the 16-byte shared-memory reads of two lanes merge.
struct LanePosition {
  int row;  // 0..3
  int col;  // 0..7
};
__device__ inline LanePosition lane_position(int lane) {
  return {((lane >> 1) & 1) | ((lane >> 3) & 2), (lane & 1) | ((lane >> 1) & 6)};
}

// Appends the indices of the set bits of a chunk, in ascending order, to list[count..]; lane l of
// the warp holds word l of the chunk. Returns the new count, the same in all lanes.
__device__ inline int append_set_bits(std::uint32_t word, int first_k, int lane, int* list,
                                      int count) {
  const int mine = __popc(word);
  int inclusive = mine;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const int below = __shfl_up_sync(kFullWarp, inclusive, distance);
    if (lane >= distance) inclusive += below;
  }
  int position = count + inclusive - mine;
  for (int k = first_k + lane * 32; word != 0; word &= word - 1) {
    list[position++] = k + __ffs(static_cast<int>(word)) - 1;
  }
  return count + __shfl_sync(kFullWarp, inclusive, 31);
}

// Word `word` of the indices that survive in a tile of kStripsA x kStripsB strips: those that any
// of its strips of A and any of its strips of B has. Strips past the last repeat it.
template <int kStripsA, int kStripsB>
__device__ std::uint32_t joint_word(const Operands& op, int strip_a, int strip_b, int word) {
  std::uint32_t a = 0;
  std::uint32_t b = 0;
#pragma unroll
  for (int s = 0; s < kStripsA; ++s) {
    const int strip = min(strip_a + s, op.strips_a - 1);
    a |= op.a_bits[static_cast<std::int64_t>(strip) * op.words + word];
  }
#pragma unroll
  for (int s = 0; s < kStripsB; ++s) {
    const int strip = min(strip_b + s, op.strips_b - 1);
    b |= op.b_bits[static_cast<std::int64_t>(strip) * op.words + word];
  }
  return a & b;
}

// Element `at` of a strip's line for k = 0. Past the last strip, or past the end of B's rows, the
// address is clamped: what it yields belongs to elements outside C.
__device__ inline const char* a_line(const Operands& op, int strip, int at) {
  const std::int64_t clamped = min(strip, op.strips_a - 1);
  return reinterpret_cast<const char*>(static_cast<const float*>(op.a_lines) +
                                       clamped * op.k * kStrip + at);
}
__device__ inline const char* b_line(const Operands& op, int strip, int at) {
  const std::int64_t col = static_cast<std::int64_t>(strip) * kStrip + at;
  return reinterpret_cast<const char*>(static_cast<const float*>(op.b) +
                                       min(col, static_cast<std::int64_t>(op.ldb_bytes / 4 - 4)));
}

// Copies of 16 bytes, in flight until the pipeline is waited for; from k lines of A, or rows of B,
// after `source`.
__device__ inline void copy_from_a(float* target, const char* source, int k) {
  __pipeline_memcpy_async(
      target, source + static_cast<std::uint64_t>(static_cast<unsigned>(k)) * kLineBytes,
      kCopyBytes);
}
__device__ inline void copy_from_b(float* target, const char* source, int k, const Operands& op) {
  __pipeline_memcpy_async(
      target, source + static_cast<std::uint64_t>(static_cast<unsigned>(k)) * op.ldb_bytes,
      kCopyBytes);
}

inline constexpr int kRasterRows = 16;  // CTA tiles of C that share strips of B in L2

// Block `index` of a rows x cols grid, walked in bands of kRasterRows rows, column by column.
__device__ inline int2 raster(int index, int rows, int cols) {
  const int band = index / (kRasterRows * cols);
  const int height = min(kRasterRows, rows - band * kRasterRows);
  const int within = index - band * kRasterRows * cols;
  return make_int2(band * kRasterRows + within % height, within / height);
}

// What one k-index contributes to a lane's sums: its rows of kStripsA strips of A, its columns of
// kStripsB strips of B.
template <int kStripsA, int kStripsB>
struct Fragment {
  float a[kStripsA * 8];
  float b[kStripsB * 4];

  // The strips' lines follow one another in shared memory.
  __device__ void load(const float* a_line, const float* b_line, LanePosition at) {
#pragma unroll
    for (int half = 0; half < 2 * kStripsA; ++half) {
      const float4 four = *reinterpret_cast<const float4*>(a_line + half * 16 + at.row * 4);
      a[half * 4] = four.x;
      a[half * 4 + 1] = four.y;
      a[half * 4 + 2] = four.z;
      a[half * 4 + 3] = four.w;
    }
#pragma unroll
    for (int t = 0; t < kStripsB; ++t) {
      const float4 four = *reinterpret_cast<const float4*>(b_line + t * kStrip + at.col * 4);
      b[t * 4] = four.x;
      b[t * 4 + 1] = four.y;
      b[t * 4 + 2] = four.z;
      b[t * 4 + 3] = four.w;
    }
  }
};

// A lane's part of a tile of C: row i / 8 * 32 + (its i % 8th row), column likewise in fours.
template <int kStripsA, int kStripsB>
struct Sums {
  float at[kStripsA * 8][kStripsB * 4] = {};

  __device__ void add(const Fragment<kStripsA, kStripsB>& f) {
#pragma unroll
    for (int i = 0; i < kStripsA * 8; ++i) {
#pragma unroll
      for (int j = 0; j < kStripsB * 4; ++j) at[i][j] += f.a[i] * f.b[j];
    }
  }

  // The same, four columns at a time, down the rows and up again, and along a row back and forth:
  // each product shares an operand with the one before, which spares register reads (3 % of the
  // dense path; none on the sparse one).
  __device__ void add_serpentine(const Fragment<kStripsA, kStripsB>& f) {
    constexpr int kRows = kStripsA * 8;
#pragma unroll
    for (int t = 0; t < kStripsB; ++t) {
#pragma unroll
      for (int step = 0; step < kRows; ++step) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int i = t % 2 == 0 ? step : kRows - 1 - step;
          const int col = t * 4 + (step % 2 == 0 ? j : 3 - j);
          at[i][col] += f.a[i] * f.b[col];
        }
      }
    }
  }
};

// Writes the lane's part of the tile whose first strips are given; what lies outside C is left out.
// Columns come in fours: those at or after n are padding of C.
template <int kStripsA, int kStripsB>
__device__ void store_tile(const Operands& op, int strip_a, int strip_b, LanePosition lane,
                           const Sums<kStripsA, kStripsB>& sums) {
#pragma unroll
  for (int i = 0; i < kStripsA * 8; ++i) {
    const std::int64_t row =
        static_cast<std::int64_t>(strip_a + i / 8) * kStrip + i % 8 / 4 * 16 + lane.row * 4 + i % 4;
    if (row >= op.m) continue;
#pragma unroll
    for (int t = 0; t < kStripsB; ++t) {
      const std::int64_t col = static_cast<std::int64_t>(strip_b + t) * kStrip + lane.col * 4;
      if (col >= op.n) continue;
      const float* four = sums.at[i] + t * 4;
      __stcs(reinterpret_cast<float4*>(static_cast<float*>(op.c) + row * op.ldc + col),
             make_float4(four[0], four[1], four[2], four[3]));
    }
  }
}

}  // namespace spmmbench::esmm
