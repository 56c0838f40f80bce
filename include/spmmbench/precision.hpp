#pragma once
// Precision classes (inputs -> accumulate -> output), element types and their rounding on the host.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace spmmbench {

// What A's values and B are rounded to before any kernel sees them. All accumulate in fp32.
enum class Precision { fp32, tf32, fp16, bf16 };

// What lies in memory. tf32 inputs are stored as fp32 whose low 13 mantissa bits are zero.
enum class ElementType { f32, f16, bf16 };

std::string_view to_string(Precision);
std::string_view to_string(ElementType);           // "fp32", "fp16", "bf16"
Precision parse_precision(std::string_view);       // throws Error listing the choices
ElementType parse_element_type(std::string_view);  // "fp32" | "fp16" | "bf16"

constexpr ElementType storage_type(Precision p) {
  return p == Precision::fp16   ? ElementType::f16
         : p == Precision::bf16 ? ElementType::bf16
                                : ElementType::f32;
}
constexpr std::size_t bytes_of(ElementType t) { return t == ElementType::f32 ? 4 : 2; }

// Unit roundoff (half an ulp of 1) under round to nearest.
constexpr double unit_roundoff(ElementType t) {
  return t == ElementType::f32 ? 0x1p-24 : t == ElementType::f16 ? 0x1p-11 : 0x1p-8;
}

// Round to nearest even in the precision's significand and exponent range, returned as fp32.
float round_to(Precision, float);

// IEEE half and bfloat16 bits, round to nearest even; overflow gives infinity, NaN stays NaN.
std::uint16_t to_half_bits(float);
float from_half_bits(std::uint16_t);
std::uint16_t to_bfloat16_bits(float);
float from_bfloat16_bits(std::uint16_t);

}  // namespace spmmbench
