#pragma once
// Element types and precisions: two tables, from which all code that depends on them is generated,
// for host and device. A new type or precision is one row, and its number in plugin.h.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <type_traits>

#include "spmmbench/host_device.hpp"

// What lies in memory: X(id, name, exponent bits, fraction bits, number in plugin.h, C++ type on
// the device, cudaDataType, CUtensorMapDataType). The last three are expanded by CUDA code only.
// clang-format off
#define SPMMBENCH_ELEMENT_TYPES(X)                                                                    \
  X(f32, "fp32", 8, 23, SPMMBENCH_F32, float, CUDA_R_32F, CU_TENSOR_MAP_DATA_TYPE_FLOAT32)            \
  X(f16, "fp16", 5, 10, SPMMBENCH_F16, __half, CUDA_R_16F, CU_TENSOR_MAP_DATA_TYPE_FLOAT16)           \
  X(bf16, "bf16", 8, 7, SPMMBENCH_BF16, __nv_bfloat16, CUDA_R_16BF, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16) \
  X(f64, "fp64", 11, 52, SPMMBENCH_F64, double, CUDA_R_64F, CU_TENSOR_MAP_DATA_TYPE_FLOAT64)          \
  X(e4m3, "fp8_e4m3", 4, 3, SPMMBENCH_E4M3, __nv_fp8_e4m3, CUDA_R_8F_E4M3, CU_TENSOR_MAP_DATA_TYPE_UINT8) \
  X(e5m2, "fp8_e5m2", 5, 2, SPMMBENCH_E5M2, __nv_fp8_e5m2, CUDA_R_8F_E5M2, CU_TENSOR_MAP_DATA_TYPE_UINT8)
// clang-format on

// What A's values and B are rounded to before any kernel sees them: X(id, name, element type,
// fraction bits kept, number in plugin.h, cublasComputeType_t). tf32 is stored as fp32 whose low 13
// bits are zero. fp64 accumulates in fp64 and has a C of fp64, all others accumulate in fp32. What
// lies in 8 bits has a scale of A and one of B (scale_of), with `block` in its name scales of
// blocks of them (block_scales.hpp).
#define SPMMBENCH_PRECISIONS(X)                                               \
  X(fp32, "fp32", f32, 23, SPMMBENCH_FP32_IN, CUBLAS_COMPUTE_32F)             \
  X(tf32, "tf32", f32, 10, SPMMBENCH_TF32_IN, CUBLAS_COMPUTE_32F_FAST_TF32)   \
  X(fp16, "fp16", f16, 10, SPMMBENCH_FP16_IN, CUBLAS_COMPUTE_32F)             \
  X(bf16, "bf16", bf16, 7, SPMMBENCH_BF16_IN, CUBLAS_COMPUTE_32F)             \
  X(fp64, "fp64", f64, 52, SPMMBENCH_FP64_IN, CUBLAS_COMPUTE_64F)             \
  X(fp8_e4m3, "fp8_e4m3", e4m3, 3, SPMMBENCH_FP8_E4M3_IN, CUBLAS_COMPUTE_32F) \
  X(fp8_e5m2, "fp8_e5m2", e5m2, 2, SPMMBENCH_FP8_E5M2_IN, CUBLAS_COMPUTE_32F) \
  X(fp8_e4m3_block, "fp8_e4m3_block", e4m3, 3, SPMMBENCH_FP8_E4M3_BLOCK_IN, CUBLAS_COMPUTE_32F)

namespace spmmbench {

#define SPMMBENCH_ID(id, ...) id,
enum class ElementType { SPMMBENCH_ELEMENT_TYPES(SPMMBENCH_ID) };
enum class Precision { SPMMBENCH_PRECISIONS(SPMMBENCH_ID) };
#undef SPMMBENCH_ID

#define SPMMBENCH_LISTED(id, ...) ElementType::id,
inline constexpr std::array kElementTypes = {SPMMBENCH_ELEMENT_TYPES(SPMMBENCH_LISTED)};
#undef SPMMBENCH_LISTED
#define SPMMBENCH_LISTED(id, ...) Precision::id,
inline constexpr std::array kPrecisions = {SPMMBENCH_PRECISIONS(SPMMBENCH_LISTED)};
#undef SPMMBENCH_LISTED

std::string_view to_string(Precision);
std::string_view to_string(ElementType);
Precision parse_precision(std::string_view);       // throws Error listing the choices
ElementType parse_element_type(std::string_view);  // likewise

// Rounds away the low `drop` bits of fp32's bits, to nearest even. Infinity and NaN pass through.
SPMMBENCH_HOST_DEVICE constexpr std::uint32_t round_low_bits(std::uint32_t bits, int drop) {
  if (drop == 0 || (bits & 0x7F800000U) == 0x7F800000U) return bits;
  const std::uint32_t half_less_one = (1U << (drop - 1)) - 1;
  const std::uint32_t odd = (bits >> drop) & 1U;
  return (bits + half_less_one + odd) & ~((1U << drop) - 1);
}

// A binary floating-point format of IEEE 754's kind: one sign bit, then `kExponent` and `kFraction`
// bits. No wider than fp32 in either.
template <int kExponent, int kFraction>
struct BinaryFormat {
  static_assert(kExponent <= 8 && kFraction <= 23);
  using Bits = std::conditional_t<
      1 + kExponent + kFraction <= 8, std::uint8_t,
      std::conditional_t<1 + kExponent + kFraction <= 16, std::uint16_t, std::uint32_t>>;
  using Value = float;  // what is encoded and decoded
  static constexpr int kFractionBits = kFraction;
  static constexpr int kBias = (1 << (kExponent - 1)) - 1;
  static constexpr float kLargest = std::bit_cast<float>(  // 2^kBias (2 - 2^-kFraction)
      static_cast<std::uint32_t>(127 + kBias) << 23 | ((1U << kFraction) - 1) << (23 - kFraction));

  // To nearest even; too large gives infinity, NaN stays NaN.
  SPMMBENCH_HOST_DEVICE static constexpr Bits encode(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    const std::uint32_t sign = (bits >> 31) << (kExponent + kFraction);
    if (magnitude > 0x7F800000U) return static_cast<Bits>(sign | kInfinity | 1U << (kFraction - 1));
    if constexpr (kExponent == 8) {
      return static_cast<Bits>(round_low_bits(bits, kDrop) >> kDrop);
    } else {
      if (magnitude >= kOverflow32) return static_cast<Bits>(sign | kInfinity);
      if (magnitude < kNormal32) {  // subnormal: the sum's last bit is the format's last bit
        const float aligned = std::bit_cast<float>(magnitude) + std::bit_cast<float>(kAlign32);
        return static_cast<Bits>(sign | (std::bit_cast<std::uint32_t>(aligned) - kAlign32));
      }
      return static_cast<Bits>(sign | (round_low_bits(magnitude, kDrop) - kRebias32) >> kDrop);
    }
  }

  // Without branches, so that a loop over it is vectorised. The product moves the exponent's bias
  // to fp32's, subnormals included.
  SPMMBENCH_HOST_DEVICE static constexpr float decode(Bits bits) {
    const auto wide = static_cast<std::uint32_t>(bits);
    if constexpr (kExponent == 8) {
      return std::bit_cast<float>(wide << kDrop);
    } else {
      const std::uint32_t magnitude = (wide & ((1U << (kExponent + kFraction)) - 1)) << kDrop;
      const std::uint32_t special = magnitude >= kInfinity << kDrop ? 0x7F800000U : 0U;
      const float scaled = std::bit_cast<float>(magnitude) *
                           std::bit_cast<float>(static_cast<std::uint32_t>(254 - kBias) << 23);
      return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | special |
                                  (wide >> (kExponent + kFraction)) << 31);
    }
  }

 private:
  static constexpr int kDrop = 23 - kFraction;  // bits of fp32's fraction that this format lacks
  static constexpr std::uint32_t kInfinity = ((1U << kExponent) - 1) << kFraction;
  // As bits of fp32: the difference of the exponent fields, the smallest normal number, the
  // smallest number that rounds to infinity, and 2^23 times the smallest subnormal number.
  static constexpr std::uint32_t kRebias32 = static_cast<std::uint32_t>(127 - kBias) << 23;
  static constexpr std::uint32_t kNormal32 = kRebias32 + (1U << 23);
  static constexpr std::uint32_t kOverflow32 =
      (static_cast<std::uint32_t>(128 + kBias) << 23) - (kDrop == 0 ? 0U : 1U << (kDrop - 1));
  static constexpr std::uint32_t kAlign32 = static_cast<std::uint32_t>(151 - kBias - kFraction)
                                            << 23;
};

// fp64 is what it is encoded from.
template <>
struct BinaryFormat<11, 52> {
  using Bits = std::uint64_t;
  using Value = double;
  static constexpr int kFractionBits = 52;
  static constexpr int kBias = 1023;

  SPMMBENCH_HOST_DEVICE static constexpr Bits encode(double value) {
    return std::bit_cast<Bits>(value);
  }
  SPMMBENCH_HOST_DEVICE static constexpr double decode(Bits bits) {
    return std::bit_cast<double>(bits);
  }
};

// Eight bits that give up infinity for numbers up to 448 (OCP 8-bit floating point, E4M3).
template <>
struct BinaryFormat<4, 3> {
  using Bits = std::uint8_t;
  using Value = float;
  static constexpr int kFractionBits = 3;
  static constexpr int kBias = 7;
  static constexpr float kLargest = 448;

  // To nearest even; what would round to more than the largest number becomes NaN.
  SPMMBENCH_HOST_DEVICE static constexpr Bits encode(float value) {
    constexpr float kMiddle = 464, kNormal = 0x1p-6F;  // kMiddle: to the next, had it one more
    constexpr float kAlign = 0x1p14F;                  // 2^23 times the smallest subnormal number
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = bits >> 31 << 7, magnitude = bits & 0x7FFFFFFFU;
    if (magnitude > std::bit_cast<std::uint32_t>(kMiddle)) return static_cast<Bits>(sign | kNan);
    if (magnitude < std::bit_cast<std::uint32_t>(kNormal)) {
      const float aligned = std::bit_cast<float>(magnitude) + kAlign;
      return static_cast<Bits>(
          sign | (std::bit_cast<std::uint32_t>(aligned) - std::bit_cast<std::uint32_t>(kAlign)));
    }
    return static_cast<Bits>(sign | (round_low_bits(magnitude, kDrop) - kRebias32) >> kDrop);
  }

  SPMMBENCH_HOST_DEVICE static constexpr float decode(Bits bits) {
    const std::uint32_t magnitude = bits & 0x7FU;
    const float scaled = std::bit_cast<float>(magnitude << kDrop) * 0x1p120F;
    const std::uint32_t special = magnitude == kNan ? 0x7FC00000U : 0U;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | special |
                                static_cast<std::uint32_t>(bits) >> 7 << 31);
  }

 private:
  static constexpr int kDrop = 20;
  static constexpr std::uint32_t kNan = 0x7F, kRebias32 = std::uint32_t{127 - kBias} << 23;
};

template <ElementType>
struct Element;
#define SPMMBENCH_ELEMENT(id, name, exponent, fraction, ...) \
  template <>                                                \
  struct Element<ElementType::id> : BinaryFormat<exponent, fraction> {};
SPMMBENCH_ELEMENT_TYPES(SPMMBENCH_ELEMENT)
#undef SPMMBENCH_ELEMENT

// Calls `function` with the Element of `type`.
template <class Function>
constexpr decltype(auto) visit_element(ElementType type, Function&& function) {
  switch (type) {
#define SPMMBENCH_CASE(id, ...) \
  case ElementType::id: return function(Element<ElementType::id>{});
    SPMMBENCH_ELEMENT_TYPES(SPMMBENCH_CASE)
#undef SPMMBENCH_CASE
  }
  std::abort();
}

constexpr ElementType storage_type(Precision p) {
  switch (p) {
#define SPMMBENCH_CASE(id, name, type, ...) \
  case Precision::id: return ElementType::type;
    SPMMBENCH_PRECISIONS(SPMMBENCH_CASE)
#undef SPMMBENCH_CASE
  }
  std::abort();
}

// Of 2^-1074, the smallest subnormal double, up to 2^1024, which is infinity.
constexpr double power_of_two(int exponent) {
  if (exponent < -1022) return std::bit_cast<double>(std::uint64_t{1} << (exponent + 1074));
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}
constexpr std::size_t bytes_of(ElementType t) {
  return visit_element(t, [](auto e) { return sizeof(typename decltype(e)::Bits); });
}
// Unit roundoff: half an ulp of 1, under round to nearest.
constexpr double unit_roundoff(ElementType t) {
  return visit_element(t, [](auto e) { return power_of_two(-e.kFractionBits - 1); });
}
constexpr double smallest_normal(ElementType t) {
  return visit_element(t, [](auto e) { return power_of_two(1 - e.kBias); });
}
constexpr double smallest_subnormal(ElementType t) {
  return visit_element(t, [](auto e) { return power_of_two(1 - e.kBias - e.kFractionBits); });
}
// Magnitudes from here on round to infinity; infinity for fp64. Those beyond it to NaN in e4m3.
constexpr double overflow_threshold(ElementType t) {
  if (t == ElementType::e4m3) return 464;
  return visit_element(t, [](auto e) {
    return power_of_two(e.kBias + 1) - power_of_two(e.kBias - e.kFractionBits - 1);
  });
}

// Of types with at most 32 bits.
constexpr std::uint32_t encode(ElementType type, float value) {
  return visit_element(type, [=](auto e) { return static_cast<std::uint32_t>(e.encode(value)); });
}
constexpr float decode(ElementType type, std::uint32_t bits) {
  return visit_element(type, [=](auto e) {
    return static_cast<float>(e.decode(static_cast<typename decltype(e)::Bits>(bits)));
  });
}

// Element `at` of an array in host memory. Storing rounds a number of fp32, or of fp64 for a type
// that has it, to nearest even.
inline double load_element(ElementType type, const void* data, std::int64_t at) {
  return visit_element(type, [=](auto e) -> double {
    return e.decode(static_cast<const typename decltype(e)::Bits*>(data)[at]);
  });
}
inline void store_element(ElementType type, void* data, std::int64_t at, double value) {
  visit_element(type, [=](auto e) {
    using Stored = decltype(e);
    static_cast<typename Stored::Bits*>(data)[at] =
        e.encode(static_cast<typename Stored::Value>(value));
  });
}

// What C is stored as: a product in fp64 gives fp64, whatever else is asked for.
constexpr ElementType type_of_c(Precision precision, ElementType asked) {
  return precision == Precision::fp64 ? ElementType::f64 : asked;
}

// Whether A has a scale and B another: an element is what is stored times the scale.
SPMMBENCH_HOST_DEVICE constexpr bool is_scaled(Precision precision) {
  switch (precision) {
#define SPMMBENCH_CASE(id, name, type, ...) \
  case Precision::id: return sizeof(Element<ElementType::type>::Bits) == 1;
    SPMMBENCH_PRECISIONS(SPMMBENCH_CASE)
#undef SPMMBENCH_CASE
  }
  return false;
}
// Whether blocks of A and of B have scales of their own (block_scales.hpp).
SPMMBENCH_HOST_DEVICE constexpr bool has_block_scales(Precision precision) {
  return precision == Precision::fp8_e4m3_block;
}
template <class Stored>
SPMMBENCH_HOST_DEVICE constexpr float scale_in(float greatest) {
  if constexpr (sizeof(typename Stored::Bits) > 1) return 1;
  else return greatest > 0 ? greatest / Stored::kLargest : 1.0F;
}
// The scale of a matrix whose greatest magnitude is this: it is stored as the largest number.
SPMMBENCH_HOST_DEVICE constexpr float scale_of(Precision precision, float greatest) {
  switch (precision) {
#define SPMMBENCH_CASE(id, name, type, ...) \
  case Precision::id: return scale_in<Element<ElementType::type>>(greatest);
    SPMMBENCH_PRECISIONS(SPMMBENCH_CASE)
#undef SPMMBENCH_CASE
  }
  return 1;
}

// Of a normal value, the leading one included.
constexpr int significand_bits(Precision precision) {
  switch (precision) {
#define SPMMBENCH_CASE(id, name, type, fraction, ...) \
  case Precision::id: return fraction + 1;
    SPMMBENCH_PRECISIONS(SPMMBENCH_CASE)
#undef SPMMBENCH_CASE
  }
  return 0;
}

// To nearest even in the precision's significand and exponent range. A number of fp32 is rounded
// once, one of fp64 to fp32 first.
SPMMBENCH_HOST_DEVICE constexpr float round_to(Precision precision, float value) {
  switch (precision) {
#define SPMMBENCH_CASE(id, name, type, fraction, ...)                                           \
  case Precision::id: {                                                                         \
    using Stored = Element<ElementType::type>;                                                  \
    constexpr int kDrop = Stored::kFractionBits - fraction;                                     \
    static_assert(kDrop == 0 || ElementType::type == ElementType::f32);                         \
    if constexpr (kDrop == 0) return static_cast<float>(Stored::decode(Stored::encode(value))); \
    return std::bit_cast<float>(round_low_bits(std::bit_cast<std::uint32_t>(value), kDrop));    \
  }
    SPMMBENCH_PRECISIONS(SPMMBENCH_CASE)
#undef SPMMBENCH_CASE
  }
  return value;
}
SPMMBENCH_HOST_DEVICE constexpr double round_to(Precision precision, double value) {
  return precision == Precision::fp64 ? value : round_to(precision, static_cast<float>(value));
}

}  // namespace spmmbench
