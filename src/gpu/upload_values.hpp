#pragma once

#include <cstdint>
#include <vector>

#include "core/worth_threads.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/matrix.hpp"

namespace spmmbench {

// Values already rounded to a type, as its bits: `encode_values(values, Element<type>{})`.
template <class Element>
std::vector<typename Element::Bits> encode_values(const std::vector<float>& values, Element) {
  std::vector<typename Element::Bits> bits(values.size());
  const auto count = static_cast<std::int64_t>(values.size());
#pragma omp parallel for schedule(static) if (count >= kWorthThreads)
  for (std::int64_t i = 0; i < count; ++i) bits[i] = Element::encode(values[i]);
  return bits;
}

// A's values (already rounded to the precision) on the device in the type they are multiplied in.
inline Buffer upload_values(Device& device, const std::vector<float>& values, ElementType type) {
  if (type == ElementType::f32) return device.upload(values);  // as they lie
  return visit_element(type,
                       [&](auto element) { return device.upload(encode_values(values, element)); });
}
inline Buffer upload_values(Device& device, const CsrMatrix& a, ElementType type) {
  return type == ElementType::f64 ? device.upload(a.values64)
                                  : upload_values(device, a.values, type);
}

}  // namespace spmmbench
