#pragma once

#include <cstdint>
#include <vector>

#include "spmmbench/device.hpp"

namespace spmmbench {

// A's values (already rounded to the precision) on the device in the type they are multiplied in.
inline Buffer upload_values(Device& device, const std::vector<float>& values, ElementType type) {
  if (type == ElementType::f32) return device.upload(values);
  std::vector<std::uint16_t> bits(values.size());
  const auto count = static_cast<std::int64_t>(values.size());
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < count; ++i)
    bits[i] = type == ElementType::f16 ? to_half_bits(values[i]) : to_bfloat16_bits(values[i]);
  return device.upload(bits);
}

}  // namespace spmmbench
