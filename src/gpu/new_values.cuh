#pragma once
// Values of a caller, read on the device in the type that they are multiplied in.

#include <cuda_runtime.h>

#include <type_traits>
#include <utility>

#include "spmmbench/replacing.hpp"

namespace spmmbench {

template <class From, class To>
__device__ typename To::Bits converted(typename From::Bits from, Precision precision) {
  const auto value = static_cast<typename To::Value>(From::decode(from));
  // Only numbers of fp32 may have to be rounded to fewer bits than they are stored in.
  if constexpr (std::is_same_v<To, Element<ElementType::f32>>)
    return To::encode(round_to(precision, value));
  else if constexpr (std::is_same_v<From, To>) return from;
  else return To::encode(value);
}

constexpr int kConvertedTogether = 8;  // values of a thread, whose loads are in flight together

// Brings given values into the operand: those of CTA `part`, of kThreads threads.
template <int kThreads, class From, class To>
__device__ void convert_part(const typename From::Bits* given, Precision precision,
                             typename To::Bits* to, std::int64_t count, std::int64_t part) {
  const std::int64_t first = part * kThreads * kConvertedTogether + threadIdx.x;
  typename From::Bits bits[kConvertedTogether];
#pragma unroll
  for (int k = 0; k < kConvertedTogether; ++k)
    if (first + k * kThreads < count) bits[k] = __ldca(given + first + k * kThreads);
#pragma unroll
  for (int k = 0; k < kConvertedTogether; ++k)
    if (first + k * kThreads < count)
      to[first + k * kThreads] = converted<From, To>(bits[k], precision);
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
