#include "verify/tensor_core.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>

namespace spmmbench {
namespace {

constexpr int kLeastExponent = -126;   // of fp32
constexpr int kLeastAlignment = -133;  // of terms

int exponent_of(double value, int least) { return std::max(std::ilogb(value), least); }

// Towards zero, to a multiple of 2^exponent.
double truncated(double value, int exponent) {
  return std::ldexp(std::trunc(std::ldexp(value, -exponent)), exponent);
}

}  // namespace

float multiply_accumulate(const TensorCore& core, std::span<const float> a,
                          std::span<const float> b, float accumulator) {
  double unrounded = accumulator;
  for (std::size_t i = 0; i < a.size(); ++i) unrounded += static_cast<double>(a[i]) * b[i];
  if (std::isnan(unrounded)) return std::bit_cast<float>(0x7FFFFFFFU);
  if (std::isinf(unrounded)) return static_cast<float>(unrounded);

  int largest = kLeastAlignment;
  if (accumulator != 0) largest = exponent_of(accumulator, kLeastExponent);
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != 0 && b[i] != 0)
      largest = std::max(
          largest, exponent_of(a[i], core.least_exponent) + exponent_of(b[i], core.least_exponent));

  // Every step is exact in fp64: the sum is of whole numbers of the last bit kept, below 2^53.
  const double last_bit = std::ldexp(1.0, largest - core.aligned_bits), per_last_bit = 1 / last_bit;
  double sum = std::trunc(accumulator * per_last_bit);
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += std::trunc(static_cast<double>(a[i]) * b[i] * per_last_bit);
  sum *= last_bit;
  if (sum == 0) return 0;
  const double result = truncated(sum, exponent_of(sum, kLeastExponent) - core.result_bits);
  if (result == 0) return 0;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return static_cast<float>(std::abs(result) < 0x1p128 ? result : std::copysign(kInfinity, result));
}

}  // namespace spmmbench
