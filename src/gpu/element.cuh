#pragma once
// Element types on the device: as stored, and fp32, or fp64 for itself, as computed with.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <library_types.h>

#include <cstddef>
#include <cstdlib>
#include <type_traits>
#include <utility>

#include "spmmbench/precision.hpp"

namespace spmmbench {

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(__half x) { return __half2float(x); }
__device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
template <class Eight>
requires(sizeof(Eight) == 1) __device__ float to_float(Eight x) { return static_cast<float>(x); }

// Round to nearest even.
template <class T>
__device__ T from_float(float x) {
  static_assert(sizeof(T) == 1);
  return T(x);
}
template <>
__device__ inline float from_float<float>(float x) {
  return x;
}
template <>
__device__ inline __half from_float<__half>(float x) {
  return __float2half_rn(x);
}
template <>
__device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

__device__ inline double to_double(double x) { return x; }
template <class T>
__device__ double to_double(T x) {
  return to_float(x);
}
template <class T>
__device__ T from_double(double x) {  // which fp32 holds where T is narrower
  if constexpr (std::is_same_v<T, double>) return x;
  else return from_float<T>(static_cast<float>(x));
}

// Calls `function` with a null pointer of the type that lies in memory, of this many bytes:
// `visit_element_type(type, [&](auto* tag) { using T = std::remove_pointer_t<decltype(tag)>; })`.
// The default leaves out fp64, for kernels that add in fp32, and fp8, which no C has.
template <std::size_t kLeastBytes = sizeof(__half), std::size_t kMostBytes = sizeof(float),
          class Function>
auto visit_element_type(ElementType type, Function&& function) {
  switch (type) {
#define SPMMBENCH_CASE(id, name, exponent, fraction, number, Device, ...)        \
  case ElementType::id:                                                          \
    if constexpr (sizeof(Device) >= kLeastBytes && sizeof(Device) <= kMostBytes) \
      return function(static_cast<Device*>(nullptr));                            \
    else break;
    SPMMBENCH_ELEMENT_TYPES(SPMMBENCH_CASE)
#undef SPMMBENCH_CASE
  }
  std::abort();
}
// The same for every type.
template <class Function>
auto visit_every_element_type(ElementType type, Function&& function) {
  return visit_element_type<1, sizeof(double)>(type, std::forward<Function>(function));
}

// What cuSPARSE and cuBLAS call it.
inline cudaDataType cuda_type(ElementType type) {
  switch (type) {
#define SPMMBENCH_CASE(id, name, exponent, fraction, number, Device, library_type, ...) \
  case ElementType::id: return library_type;
    SPMMBENCH_ELEMENT_TYPES(SPMMBENCH_CASE)
#undef SPMMBENCH_CASE
  }
  std::abort();
}

}  // namespace spmmbench
