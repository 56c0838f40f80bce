#include "verify/bound.hpp"

#include <algorithm>
#include <cmath>

namespace spmmbench {

ErrorBound error_bound(const KernelInfo& kernel, Precision precision, ElementType c_type) {
  const bool tensor_core =
      kernel.accumulation == Accumulation::fp32_tensor_core && precision != Precision::fp32;
  ErrorBound bound;
  bound.unit = tensor_core ? 0x1p-22 : 0x1p-24;
  if (c_type != ElementType::f32) {
    bound.output_unit = unit_roundoff(c_type);
    bound.output_absolute = c_type == ElementType::f16 ? 0x1p-25 : 0x1p-134;
  }
  return bound;
}

double bound_at(const ErrorBound& bound, double abs_sum, double reference, double k) {
  const double sum = std::min(k * bound.unit, 1.0) * abs_sum;
  return sum + bound.output_unit * (std::abs(reference) + sum) +
         (k > 0 ? bound.output_absolute : 0.0);
}

}  // namespace spmmbench
