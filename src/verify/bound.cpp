#include "verify/bound.hpp"

#include <algorithm>

namespace spmmbench {

ErrorBound error_bound(const KernelInfo& kernel, Precision precision, ElementType c_type) {
  const Accumulation sums =
      precision == Precision::fp32 ? Accumulation::fp32_fma : kernel.accumulation;
  const ElementType sum_type = sums == Accumulation::fp16 ? ElementType::f16 : ElementType::f32;
  ErrorBound bound;
  // fp16 sums may come from FMAs or from tensor cores; the bound holds for both.
  bound.unit = (sums == Accumulation::fp32_fma ? 1 : 4) * unit_roundoff(sum_type);
  // A product and a sum, each flushed to zero when subnormal.
  bound.underflow = 2 * smallest_normal(sum_type);
  bound.sum_overflow = overflow_threshold(sum_type);
  bound.overflow = std::min(overflow_threshold(c_type), bound.sum_overflow);
  if (c_type != ElementType::f32) {
    bound.output_unit = unit_roundoff(c_type);
    bound.output_absolute = smallest_subnormal(c_type) / 2;
  }
  return bound;
}

}  // namespace spmmbench
