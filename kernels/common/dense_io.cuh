#pragma once
// Rows of B in and rows of C out, 16 bytes at a time. Rows start at 16-byte boundaries and are
// padded to 16 bytes (see DenseView), so a vector that begins inside a row may be moved whole.

#include <cstdint>

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

// Writes kCount consecutive elements of a row of C, of which the first `valid` lie inside it, as
// streaming stores: C is not read again, so it should not push B out of the L2 cache.
template <int kCount>
__device__ void store_streaming(float* to, const float (&x)[kCount], std::int64_t valid) {
#pragma unroll
  for (int i = 0; i < kCount; i += 4)
    if (i < valid)
      __stcs(reinterpret_cast<float4*>(to + i), make_float4(x[i], x[i + 1], x[i + 2], x[i + 3]));
}
template <class T, int kCount>
__device__ void store_streaming(T* to, const float (&x)[kCount], std::int64_t valid) {
#pragma unroll
  for (int i = 0; i < kCount; i += 4) {
    if (i >= valid) continue;
    T packed[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) packed[j] = from_float<T>(x[i + j]);
    __stcs(reinterpret_cast<uint2*>(to + i), reinterpret_cast<const uint2&>(packed));
  }
}

}  // namespace spmmbench
