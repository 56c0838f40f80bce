#include "verify/bound.hpp"

namespace spmmbench {

ErrorBound error_bound(const KernelInfo& kernel, Precision precision, ElementType c_type) {
  const bool tensor_core =
      kernel.accumulation == Accumulation::fp32_tensor_core && precision != Precision::fp32;
  constexpr double kRoundoff = unit_roundoff(ElementType::f32);
  // A product and a sum, each flushed to zero when subnormal.
  constexpr double kFlushed = 2 * smallest_normal(ElementType::f32);
  ErrorBound bound;
  bound.unit = tensor_core ? 4 * kRoundoff : kRoundoff;
  bound.underflow = kFlushed;
  bound.overflow = overflow_threshold(c_type);
  if (c_type != ElementType::f32) {
    bound.output_unit = unit_roundoff(c_type);
    bound.output_absolute = smallest_subnormal(c_type) / 2;
  }
  return bound;
}

}  // namespace spmmbench
