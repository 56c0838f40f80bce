#pragma once
// What all device code of csr_merge uses: sums, C, and A as it is staged. csr_merge.cu explains how
// work is divided.

#include <cstdint>
#include <type_traits>

#include "common/sums.cuh"
#include "spmmbench/device_csr.hpp"

namespace spmmbench::csr_merge {

using spmmbench::unpack;

constexpr int kThreads = 256;
constexpr int kCtasPerSm = 4;        // 64 registers: all loads of a batch stay in flight
constexpr int kVectorCtasPerSm = 8;  // 32 registers
// Rows of B that a group has in flight, and the same where rows of A end among their nonzeros.
constexpr int kUnroll = 8, kUnrollEnds = 4;
constexpr unsigned kWarp = 0xFFFFFFFFU;

// What a lane loads of a row of B: 16 bytes, in fp8 8, so that it has no more sums than in 16 bits.
template <class T>
using Piece = std::conditional_t<sizeof(T) == 1, uint2, uint4>;
template <class T>
constexpr int kPerPiece = static_cast<int>(sizeof(Piece<T>) / sizeof(T));

template <class Eight>
__device__ void unpack(const uint2& raw, float (&out)[8], Eight type_of_b) {
  float sixteen[16];  // the compiler leaves out the second half
  spmmbench::unpack(make_uint4(raw.x, raw.y, 0, 0), sixteen, type_of_b);
#pragma unroll
  for (int j = 0; j < 8; ++j) out[j] = sixteen[j];
}

// A row that CTAs share is summed in memory: in the slot of the CTA that it begins in.
template <class Sum>
struct Sums {
  Sum* slots;          // [CTA][columns_padded]; all zero between launches
  unsigned* arrivals;  // [CTA][slab]; all zero between launches
  std::int64_t columns_padded;
};

// Where C goes. Element (i, j) is at data[i * stride + j], of type `type`.
struct Rows {
  void* data;
  std::int64_t stride;
  ElementType type;
};

// What a lane does with the columns that it holds: kCount of them, from `column` on.
template <class Sum, int kCount, int kLanes>
struct Columns {
  std::int64_t column, n;

  __device__ void store(const Rows& c, std::int64_t row, const Sum (&sums)[kCount]) const {
    if constexpr (std::is_same_v<Sum, double>) store_as<double>(c, row, sums);
    else if (c.type == ElementType::f32) store_as<float>(c, row, sums);
    else if (c.type == ElementType::f16) store_as<__half>(c, row, sums);
    else store_as<__nv_bfloat16>(c, row, sums);
  }

  template <class C>
  __device__ void store_as(const Rows& c, std::int64_t row, const Sum (&sums)[kCount]) const {
    C* const to = static_cast<C*>(c.data) + row * c.stride;
    if constexpr (kCount == 1) {
      *to = from_sum<C>(sums[0]);
    } else if constexpr (kLanes > 1 || kCount == 2) {
      store_streaming(to, column, n, sums, lanes_of_group<kLanes>());
    } else {
#pragma unroll
      for (int j = 0; j < kCount; j += 4)
        if (column + j < n)
          store_four(to + column + j, make_float4(sums[j], sums[j + 1], sums[j + 2], sums[j + 3]));
    }
  }

  // This CTA's part of a row that several CTAs share. The last of them writes C.
  __device__ void add_part(const Sums<Sum>& shared, const Rows& c, const DeviceCsr& a,
                           std::int64_t row, int places, int lane,
                           const Sum (&part)[kCount]) const {
    const std::int64_t owner = (__ldg(a.row_ptr + row) + row) / places;
    const std::int64_t end = (__ldg(a.row_ptr + row + 1) + row) / places;
    Sum sums[kCount == 1 ? kPerVector<Sum> : kCount] = {};
#pragma unroll
    for (int j = 0; j < kCount; ++j) sums[j] = part[j];
    if (!add_in_slot<kLanes>(shared.slots + owner * shared.columns_padded + column - lane * kCount,
                             shared.arrivals + owner * gridDim.y + blockIdx.y,
                             static_cast<int>(end - owner) + 1, lane, column < n, sums))
      return;
    Sum all[kCount];
#pragma unroll
    for (int j = 0; j < kCount; ++j) all[j] = sums[j];
    store(c, row, all);
  }
};

// A nonzero as it is staged in shared memory.
template <class Sum>
struct alignas(2 * sizeof(Sum)) Entry {
  std::uint32_t b_piece;  // where its row of B begins, in pieces
  Sum value;
};

// Bytes of shared memory for the staged part of A: nonzeros or, for a vector, their products, and
// after them the ends of rows. Together they are as many as the places, and one end more.
template <class Sum, int kCount>
constexpr std::size_t staged_bytes(int places) {
  return static_cast<std::size_t>(places + 1) * (kCount == 1 ? sizeof(Sum) : sizeof(Entry<Sum>));
}

// What is staged of A: for a vector products with its elements, otherwise nonzeros.
template <class TB, int kCount>
using Staged = std::conditional_t<kCount == 1, SumOf<TB>, Entry<SumOf<TB>>>;

}  // namespace spmmbench::csr_merge
