#pragma once

#include <cstdint>
#include <vector>

#include "spmmbench/device.hpp"

namespace spmmbench {

// Values already rounded to f16 or bf16, as that type's bits.
inline std::vector<std::uint16_t> to_bits16(const std::vector<float>& values, ElementType type) {
  std::vector<std::uint16_t> bits(values.size());
  const auto count = static_cast<std::int64_t>(values.size());
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < count; ++i)
    bits[i] = type == ElementType::f16 ? to_half_bits(values[i]) : to_bfloat16_bits(values[i]);
  return bits;
}

// A's values (already rounded to the precision) on the device in the type they are multiplied in.
inline Buffer upload_values(Device& device, const std::vector<float>& values, ElementType type) {
  if (type == ElementType::f32) return device.upload(values);
  return device.upload(to_bits16(values, type));
}

}  // namespace spmmbench
