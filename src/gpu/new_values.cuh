#pragma once
// Values of a caller, read on the device in the type that they are multiplied in.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <type_traits>
#include <utility>

#include "spmmbench/replacing.hpp"

namespace spmmbench {

// As To::encode, in one instruction where the GPU has it. A NaN keeps its sign here, and there it
// does not.
template <class To>
__device__ typename To::Bits encode_on_device(typename To::Value value) {
  if constexpr (std::is_same_v<To, Element<ElementType::f16>> ||
                std::is_same_v<To, Element<ElementType::bf16>>) {
    const bool is_nan = (__float_as_uint(value) & 0x7FFFFFFFU) > 0x7F800000U;
    if (is_nan) return To::encode(value);
    if constexpr (std::is_same_v<To, Element<ElementType::f16>>)
      return __half_as_ushort(__float2half_rn(value));
    else return __bfloat16_as_ushort(__float2bfloat16_rn(value));
  } else {
    return To::encode(value);
  }
}

// Only numbers of fp32 may have to be rounded to fewer bits than they are stored in.
template <class To>
__device__ typename To::Bits rounded(typename To::Value value, Precision precision) {
  if constexpr (std::is_same_v<To, Element<ElementType::f32>>)
    return To::encode(precision == Precision::tf32 ? round_to(Precision::tf32, value) : value);
  else return encode_on_device<To>(value);
}

template <class From, class To>
__device__ typename To::Bits converted(typename From::Bits from, Precision precision) {
  if constexpr (std::is_same_v<From, To> && !std::is_same_v<To, Element<ElementType::f32>>)
    return from;
  else return rounded<To>(static_cast<typename To::Value>(From::decode(from)), precision);
}

// function(from, to) with the Elements of what is given and of what is stored. Nothing is rounded
// to eight bits here: that takes a scale.
template <class Function>
void visit_new_values(const NewValues& values, const Function& function) {
  using Single = Element<ElementType::f32>;
  const ElementType stored = storage_type(values.precision);
  visit_element(stored, [&](auto to) {
    if constexpr (sizeof(typename decltype(to)::Bits) > 1)
      if (values.type != stored) return function(Single{}, to);
    function(to, to);
  });
}

}  // namespace spmmbench
