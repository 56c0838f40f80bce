#pragma once
// Element types on the device: fp32, IEEE half and bfloat16 as stored, fp32 as computed with.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "spmmbench/precision.hpp"

namespace spmmbench {

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(__half x) { return __half2float(x); }
__device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

// Round to nearest even.
template <class T>
__device__ T from_float(float x);
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

// Calls `function` with a null pointer of the type that lies in memory:
// `visit_element_type(type, [&](auto* tag) { using T = std::remove_pointer_t<decltype(tag)>; })`.
template <class Function>
auto visit_element_type(ElementType type, Function&& function) {
  switch (type) {
    case ElementType::f16: return function(static_cast<__half*>(nullptr));
    case ElementType::bf16: return function(static_cast<__nv_bfloat16*>(nullptr));
    case ElementType::f32: break;
  }
  return function(static_cast<float*>(nullptr));
}

}  // namespace spmmbench
