#include "verify/bound.hpp"

#include <algorithm>

namespace spmmbench {

namespace {

Accumulation sums_of(const KernelInfo& kernel, Precision precision) {
  return precision == Precision::fp32 ? Accumulation::fp32_fma : kernel.accumulation;
}

}  // namespace

ElementType sum_type(const KernelInfo& kernel, Precision precision) {
  return sums_of(kernel, precision) == Accumulation::fp16 ? ElementType::f16 : ElementType::f32;
}

ErrorBound error_bound(const KernelInfo& kernel, Precision precision, ElementType c_type) {
  const Accumulation sums = sums_of(kernel, precision);
  const ElementType type = sum_type(kernel, precision);
  ErrorBound bound;
  // fp16 sums may come from FMAs or from tensor cores; the bound holds for both.
  bound.unit = (sums == Accumulation::fp32_fma ? 1 : 4) * unit_roundoff(type);
  // A product and a sum, each flushed to zero when subnormal.
  bound.underflow = 2 * smallest_normal(type);
  bound.sum_overflow = overflow_threshold(type);
  bound.overflow = std::min(overflow_threshold(c_type), bound.sum_overflow);
  if (c_type != ElementType::f32) {
    bound.output_unit = unit_roundoff(c_type);
    bound.output_absolute = smallest_subnormal(c_type) / 2;
  }
  return bound;
}

}  // namespace spmmbench
