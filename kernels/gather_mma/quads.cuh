#pragma once
// How a warp of gather_mma multiplies a quad (gather_mma/format.hpp) by rows of B in shared
// memory (gather_mma/rows_of_b.cuh), and what it keeps of a slice's sums.

#include "gather_mma/rows_of_b.cuh"
#include "ptx/cvt.cuh"
#include "ptx/ld_shared.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/mma.cuh"

namespace spmmbench::gather_mma {

// Sets sums to zero, of arrays in arrays too.
__device__ inline void set_zero(float& sum) { sum = 0; }
template <class T, int kCount>
__device__ void set_zero(T (&sums)[kCount]) {
#pragma unroll
  for (T& sum : sums) set_zero(sum);
}

// The sums of a slice's 16 rows, kPlanes * 8 columns each, over the 32 lanes of a warp. kEights: of
// RowsOfB, in 8 bits.
template <class T, int kPlanes, int kEights>
class Sums;

// 16 bits. Per step of 32 nonzeros, 8 each of 4 rows:
//
//   lane l:   address of its row of B += move                          (1 dot product of bytes)
//   ldmatrix: 32 rows of a plane of B -> the first operand of two mma, transposed
//   2 mma, whose second operands have the values of two rows each, and zeros elsewhere
//
// of_[half] has the sums of rows 0 .. 7 and 8 .. 15, for column g of a plane and rows 2t and 2t + 1
// of the half. Two planes are the two halves of an mma. With one plane, an mma multiplies the
// values of one half with rows of B for both, and only half of it is read.
template <class T, int kPlanes, int kEights>
class Sums {
 public:
  using Values = uint2;  // of a quad

  // Where this lane's slot in the first line of eight rows lies, for a step. `other`: of RowsOfB.
  __device__ static unsigned first_byte(int /*step*/, int /*other*/) {
    return threadIdx.x % Streams::kOctet * kRowBytes;
  }
  __device__ void clear() { set_zero(of_); }

  // Lane 4g + t has the values of row g in slots 2t and 2t + 1, and those of row g + 8.
  __device__ void multiply(std::uint32_t (&row_of_b)[Streams::kQuadSteps], std::uint32_t moves,
                           Values values) {
    const int g = threadIdx.x % 32 / 4;
#pragma unroll
    for (int step = 0; step < Streams::kQuadSteps; ++step) {
      row_of_b[step] = __dp4a(moves, kMoveBytes << (8 * step), row_of_b[step]);
      const bool first = g == 2 * step, second = g == 2 * step + 1;  // rows whose turn it is
      std::uint32_t b[kPlanes][4];  // of rows 2s, 2s + 8, 2s + 1, 2s + 9
#pragma unroll
      for (int plane = 0; plane < kPlanes; ++plane)
        ptx::ldmatrix_x4_trans(b[plane], row_of_b[step] + plane * kPlaneBytes);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::uint32_t of_half = half == 0 ? values.x : values.y;
        const std::uint32_t low = first ? of_half : 0, high = second ? of_half : 0;
        if constexpr (kPlanes == 1)
          ptx::mma_m16n8k16(T{}, of_[half], b[0][0], b[0][1], b[0][2], b[0][3], low, high);
        else
          ptx::mma_m16n8k16(T{}, of_[half], b[0][half], b[1][half], b[0][2 + half], b[1][2 + half],
                            low, high);
      }
    }
  }

  // `to`: [row][column].
  __device__ void store(float* to) const {
    constexpr int kColumns = kPlanes * kPlaneColumns;
    const int lane = threadIdx.x % 32;
    to += 2 * (lane % 4) * kColumns + lane / 4;
#pragma unroll
    for (int plane = 0; plane < kPlanes; ++plane)
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          to[(i + 8 * half) * kColumns + plane * kPlaneColumns] =
              of_[half][2 * (kPlanes == 1 ? half : plane) + i];
  }

 private:
  float of_[2][4] = {};
};

// 8 bits. Each lane loads its nonzero's row of B in fp16, or makes it that, and multiplies it by
// its nonzero, a quarter of it: exact in fp16, since a product has 8 significant bits, is a
// multiple of 2^-18 and at most 448^2. An mma adds the products of 4 lanes, which have one row of
// A, and takes them times four. Its first operand has two columns of each lane's row side by side;
// its second one sorts them, into columns 0 to 3 in even steps and 4 to 7 in odd ones:
//
//           k =  0 1 2 3 4 5 6 7   8 9 10 ...
//   column 0     4 . 4 . 4 . 4 .                 row g: columns 0, 2 of B; row g + 8: 4, 6
//   column 1     . 4 . 4 . 4 . 4                        1, 3                           5, 7
//   column 2                       4 . 4 ...            (k < 8 and from 8 on)
//   column 3                       . 4 . ...
//
// With one plane, some steps read B in fp16, which takes turns of shared memory, and others in 8
// bits, which takes conversions: a warp converts about as fast as it loads.
//
// A row of A has two runs of 4 lanes, whose sums are added at its end.
template <int kPlanes, int kEights>
class Sums<__nv_fp8_e4m3, kPlanes, kEights> {
 public:
  using Values = std::uint32_t;

  __device__ Sums() {
    constexpr std::uint32_t kFour = 0x4400;  // in fp16
    const int g = threadIdx.x % 32 / 4;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      sorts_[i / 2][i % 2] = g == 2 * i ? kFour : g == 2 * i + 1 ? kFour << 16 : 0;
  }
  __device__ static unsigned first_byte(int step, int other) {
    const int lane = threadIdx.x % 32;
    const unsigned of_slot = lane % Streams::kOctet * kRowBytes;
    if (kPlanes > 1 || is_in_halves(step)) return of_slot;
    const unsigned first = kHasBoth<kEights> ? other : 0;
    return first + of_slot + lane / Streams::kOctet % 2 * (kRowBytes / 2);
  }
  __device__ void clear() { set_zero(of_); }

  // Byte s of `values` is this lane's of step s.
  __device__ void multiply(std::uint32_t (&row_of_b)[Streams::kQuadSteps], std::uint32_t moves,
                           Values values) {
    const uint2 converted = ptx::cvt_rn_f16x2_e4m3x2(values);
    const __half2 quarter = __float2half2_rn(0.25F);
    const __half2 quarters[2] = {__hmul2(half2_of(converted.x), quarter),
                                 __hmul2(half2_of(converted.y), quarter)};
#pragma unroll
    for (int step = 0; step < Streams::kQuadSteps; ++step) {
      row_of_b[step] = __dp4a(moves, kMoveBytes << (8 * step), row_of_b[step]);
      const __half2 two = quarters[step / 2];
      const __half2 value = step % 2 == 0 ? __low2half2(two) : __high2half2(two);
      const auto times_value = [&](std::uint32_t columns) {
        const __half2 products = __hmul2(half2_of(columns), value);
        return reinterpret_cast<const std::uint32_t&>(products);
      };
      uint4 columns[kPlanes];  // in fp16
      load(row_of_b[step], is_in_halves(step), columns);
#pragma unroll
      for (int plane = 0; plane < kPlanes; ++plane)
        ptx::mma_m16n8k16(__half{}, of_[step / 2][plane], times_value(columns[plane].x),
                          times_value(columns[plane].z), times_value(columns[plane].y),
                          times_value(columns[plane].w), sorts_[step % 2][0], sorts_[step % 2][1]);
    }
  }

  // `to`: [row][column]. All lanes of a warp call it.
  __device__ void store(float* to) const {
    constexpr int kColumns = kPlanes * kPlaneColumns;
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int is_last = g % 2;  // 1: keeps the sums of rows g + 8 of the mma
#pragma unroll
    for (int steps = 0; steps < 2; ++steps) {
      const int row = row_at(2 * steps + t / 2, g / 2);
#pragma unroll
      for (int plane = 0; plane < kPlanes; ++plane) {
        const float(&sum)[4] = of_[steps][plane];
        float2 mine = is_last ? make_float2(sum[2], sum[3]) : make_float2(sum[0], sum[1]);
        const float2 given = is_last ? make_float2(sum[0], sum[1]) : make_float2(sum[2], sum[3]);
        mine.x += __shfl_xor_sync(~0U, given.x, 4);
        mine.y += __shfl_xor_sync(~0U, given.y, 4);
        *reinterpret_cast<float2*>(to + row * kColumns + plane * kPlaneColumns + t % 2 * 2 +
                                   is_last * 4) = mine;
      }
    }
  }

 private:
  // The row of a slice that an octet has in a step.
  __device__ static int row_at(int step, int octet) { return 2 * step + octet / 2 + octet % 2 * 8; }
  __device__ static __half2 half2_of(std::uint32_t two) {
    return reinterpret_cast<const __half2&>(two);
  }
  // Whether B is read in fp16 in a step.
  __device__ static constexpr bool is_in_halves(int step) {
    const int order = step % 2 * 2 + step / 2;  // even steps before the others
    return kPlanes == 1 && order < Streams::kQuadSteps - kEights;
  }
  __device__ static uint4 halves_of(uint2 eight) {
    const uint2 first = ptx::cvt_rn_f16x2_e4m3x2(eight.x), last = ptx::cvt_rn_f16x2_e4m3x2(eight.y);
    return make_uint4(first.x, first.y, last.x, last.y);
  }
  __device__ static void load(std::uint32_t row, bool in_halves, uint4 (&columns)[1]) {
    columns[0] = in_halves ? ptx::ld_shared_v4(row) : halves_of(ptx::ld_shared_v2(row));
  }
  __device__ static void load(std::uint32_t row, bool, uint4 (&columns)[2]) {
    const uint4 sixteen = ptx::ld_shared_v4(row);
    columns[0] = halves_of(make_uint2(sixteen.x, sixteen.y));
    columns[1] = halves_of(make_uint2(sixteen.z, sixteen.w));
  }

  std::uint32_t sorts_[2][2];     // the second operand in even and in odd steps
  float of_[2][kPlanes][4] = {};  // of steps 0 and 1, of 2 and 3
};

}  // namespace spmmbench::gather_mma
