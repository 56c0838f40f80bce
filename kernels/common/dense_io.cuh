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

// What CUDA's conversions call it.
template <class Eight>
inline constexpr __nv_fp8_interpretation_t kInterpretation = __NV_E4M3;
template <>
inline constexpr __nv_fp8_interpretation_t kInterpretation<__nv_fp8_e5m2> = __NV_E5M2;

template <class Eight>
__device__ void unpack(const uint4& raw, float (&out)[16], Eight /*type of B*/) {
  const std::uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const auto both = static_cast<__nv_fp8x2_storage_t>(words[i / 2] >> (i % 2 * 16));
    const float2 pair =
        __half22float2(__half2(__nv_cvt_fp8x2_to_halfraw2(both, kInterpretation<Eight>)));
    out[2 * i] = pair.x;
    out[2 * i + 1] = pair.y;
  }
}

// One value of A or B, once or more than once.
template <class T>
__device__ T load_once(const T* from) {
  if constexpr (sizeof(T) == 1) {
    T value;
    value.__x = __ldcs(reinterpret_cast<const __nv_fp8_storage_t*>(from));
    return value;
  } else {
    return __ldcs(from);
  }
}
template <class T>
__device__ T load_value(const T* from) {
  if constexpr (sizeof(T) == 1) {
    T value;
    value.__x = __ldg(reinterpret_cast<const __nv_fp8_storage_t*>(from));
    return value;
  } else {
    return __ldg(from);
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
  static_assert(kCount == 4 || kCount == 8 || kCount == 16);
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
    //
    // With 16 columns they do so twice.
    const bool odd = threadIdx.x % 2 == 1;
#pragma unroll
    for (int first = 0; first < kCount; first += 8) {
      const float* const own = x + first;
      float theirs[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) theirs[i] = __shfl_xor_sync(lanes, odd ? own[i] : own[i + 4], 1);
      const float4 other = make_float4(theirs[0], theirs[1], theirs[2], theirs[3]);
      const std::int64_t at = column + first;
      store(odd ? at + 4 - kCount : at, odd ? other : make_float4(own[0], own[1], own[2], own[3]));
      store(odd ? at + 4 : at + kCount, odd ? make_float4(own[4], own[5], own[6], own[7]) : other);
    }
  }
}
template <class T, int kCount>
__device__ void store_streaming(T* row, std::int64_t column, std::int64_t n,
                                const float (&x)[kCount], unsigned /*lanes*/) {
  using Vector = std::conditional_t<kCount == 4, uint2, uint4>;
  constexpr int kEach = sizeof(Vector) / sizeof(T);
  static_assert(kCount % kEach == 0);
#pragma unroll
  for (int first = 0; first < kCount; first += kEach) {
    if (column + first >= n) return;
    alignas(Vector) T packed[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) packed[i] = from_float<T>(x[first + i]);
    __stcs(reinterpret_cast<Vector*>(row + column + first),
           reinterpret_cast<const Vector&>(packed));
  }
}

}  // namespace spmmbench
