#include "spmmbench/precision.hpp"

#include <fmt/format.h>

#include <bit>

#include "spmmbench/error.hpp"

namespace spmmbench {

std::string_view to_string(Precision p) {
  switch (p) {
    case Precision::fp32: return "fp32";
    case Precision::tf32: return "tf32";
    case Precision::fp16: return "fp16";
    case Precision::bf16: return "bf16";
  }
  return "?";
}

std::string_view to_string(ElementType t) {
  switch (t) {
    case ElementType::f32: return "fp32";
    case ElementType::f16: return "fp16";
    case ElementType::bf16: return "bf16";
  }
  return "?";
}

Precision parse_precision(std::string_view text) {
  for (const Precision p : {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16})
    if (text == to_string(p)) return p;
  throw Error(fmt::format("precision '{}': expected fp32, tf32, fp16 or bf16", text));
}

ElementType parse_element_type(std::string_view text) {
  for (const ElementType t : {ElementType::f32, ElementType::f16, ElementType::bf16})
    if (text == to_string(t)) return t;
  throw Error(fmt::format("element type '{}': expected fp32, fp16 or bf16", text));
}

namespace {

// Rounds away the low `drop` bits of the significand, to nearest even. Infinity and NaN pass
// through.
std::uint32_t round_low_bits(std::uint32_t bits, int drop) {
  if ((bits & 0x7F800000U) == 0x7F800000U) return bits;
  const std::uint32_t half_less_one = (1U << (drop - 1)) - 1;
  const std::uint32_t odd = (bits >> drop) & 1U;
  return (bits + half_less_one + odd) & ~((1U << drop) - 1);
}

}  // namespace

std::uint16_t to_half_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return static_cast<std::uint16_t>(sign | 0x7E00U);
  if (magnitude >= 0x477FF000U)
    return static_cast<std::uint16_t>(sign | 0x7C00U);  // rounds to 65536 or more
  if (magnitude <
      0x38800000U) {  // subnormal in half: adding 0.5 aligns the last bit kept with 2^-24
    const float aligned = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(aligned) - 0x3F000000U));
  }
  return static_cast<std::uint16_t>(sign | ((round_low_bits(magnitude, 13) - 0x38000000U) >> 13));
}

float from_half_bits(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1FU;
  const std::uint32_t fraction = half & 0x3FFU;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000U | (fraction << 13));
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

std::uint16_t to_bfloat16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>(round_low_bits(bits, 16) >> 16);
}

float from_bfloat16_bits(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

float round_to(Precision precision, float value) {
  switch (precision) {
    case Precision::fp32: return value;
    case Precision::tf32:
      return std::bit_cast<float>(round_low_bits(std::bit_cast<std::uint32_t>(value), 13));
    case Precision::fp16: return from_half_bits(to_half_bits(value));
    case Precision::bf16: return from_bfloat16_bits(to_bfloat16_bits(value));
  }
  return value;
}

}  // namespace spmmbench
