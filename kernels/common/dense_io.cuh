#pragma once
// Rows of B in and rows of C out, 16 bytes at a time. Rows start at 16-byte boundaries and are
// padded to 16 bytes (see DenseView), so a vector that begins inside a row may be moved whole.

#include <cstdint>
#include <type_traits>

#include "gpu/element.cuh"

namespace spmmbench {

template <class T>
inline constexpr int kPerVector = 16 / static_cast<int>(sizeof(T));  // elements in 16 bytes

// 16 bytes of B as fp32.
__device__ inline void unpack(const uint4& raw, float (&out)[4], float /*type of B*/) {
  out[0] = __uint_as_float(raw.x);
  out[1] = __uint_as_float(raw.y);
  out[2] = __uint_as_float(raw.z);
  out[3] = __uint_as_float(raw.w);
}
__device__ inline void unpack(const uint4& raw, float (&out)[8], __half /*type of B*/) {
  const std::uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 pair = __half22float2(reinterpret_cast<const __half2&>(words[i]));
    out[2 * i] = pair.x;
    out[2 * i + 1] = pair.y;
  }
}
__device__ inline void unpack(const uint4& raw, float (&out)[8], __nv_bfloat16 /*type of B*/) {
  const std::uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    out[2 * i] = __uint_as_float(words[i] << 16);
    out[2 * i + 1] = __uint_as_float(words[i] & 0xFFFF0000U);
  }
}

// Four neighbours of a row of C, as one streaming store: C is not read, so it should not push B out
// of the L2 cache.
template <class C>
__device__ void store_four(C* to, const float4& x) {
  using Vector = std::conditional_t<sizeof(C) == 4, float4, uint2>;
  static_assert(sizeof(Vector) == 4 * sizeof(C));
  alignas(Vector) const C packed[4] = {from_float<C>(x.x), from_float<C>(x.y), from_float<C>(x.z),
                                       from_float<C>(x.w)};
  __stcs(reinterpret_cast<Vector*>(to), reinterpret_cast<const Vector&>(packed));
}

// Writes this lane's kCount consecutive columns, from `column` on, to a row of C that has n of
// them, as streaming stores: C is not read, so it should not push B out of the L2 cache. All of
// `lanes` call it together and hold one row, an even lane and the next one side by side.
template <int kCount>
__device__ void store_streaming(float* row, std::int64_t column, std::int64_t n,
                                const float (&x)[kCount], unsigned lanes) {
  static_assert(kCount == 4 || kCount == 8);
  const auto store = [&](std::int64_t at, float4 four) {
    if (at < n) __stcs(reinterpret_cast<float4*>(row + at), four);
  };
  if constexpr (kCount == 4) {
    store(column, make_float4(x[0], x[1], x[2], x[3]));
  } else {
    // Two stores of 16 bytes, 32 apart from lane to lane, would each fill half of every 32-byte
    // sector, and a half costs the L2 cache as much as a whole. So two lanes trade four columns:
    //
    //   columns    0 1 2 3   4 5 6 7   8 9 A B   C D E F
    //   had by     even      even      odd       odd
    //   stored by  even      odd       even      odd
    const bool odd = threadIdx.x % 2 == 1;
    float theirs[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) theirs[i] = __shfl_xor_sync(lanes, odd ? x[i] : x[i + 4], 1);
    const float4 other = make_float4(theirs[0], theirs[1], theirs[2], theirs[3]);
    store(odd ? column - 4 : column, odd ? other : make_float4(x[0], x[1], x[2], x[3]));
    store(odd ? column + 4 : column + 8, odd ? make_float4(x[4], x[5], x[6], x[7]) : other);
  }
}
template <class T, int kCount>
__device__ void store_streaming(T* row, std::int64_t column, std::int64_t n,
                                const float (&x)[kCount], unsigned /*lanes*/) {
  using Vector = std::conditional_t<kCount == 8, uint4, uint2>;
  static_assert(sizeof(Vector) == kCount * sizeof(T));
  if (column >= n) return;
  alignas(Vector) T packed[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) packed[i] = from_float<T>(x[i]);
  __stcs(reinterpret_cast<Vector*>(row + column), reinterpret_cast<const Vector&>(packed));
}

}  // namespace spmmbench
