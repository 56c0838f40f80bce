#include "verify/bound.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/block_scales.hpp"

namespace spmmbench {

namespace {

constexpr int kTensorCoreBits = 14;  // of a sum of products in fp8
// What the scales of blocks take of a sum in the exact test: 2 of A times 2 of B.
constexpr int kBlockScaleBits = 2;

Accumulation sums_of(const KernelInfo& kernel, Precision precision) {
  // Tensor cores too round each product and sum of fp64 as IEEE has it.
  const bool rounded_alone = precision == Precision::fp32 || precision == Precision::fp64;
  return rounded_alone ? Accumulation::fp32_fma : kernel.accumulation;
}

}  // namespace

ElementType sum_type(const KernelInfo& kernel, Precision precision) {
  if (precision == Precision::fp64) return ElementType::f64;
  return sums_of(kernel, precision) == Accumulation::fp16 ? ElementType::f16 : ElementType::f32;
}

int sum_bits(const KernelInfo& kernel, Precision precision) {
  if (is_scaled(precision) && kernel.accumulation == Accumulation::fp32_tensor_core &&
      kernel.promoted_columns == 0)
    return kTensorCoreBits - (has_block_scales(precision) ? kBlockScaleBits : 0);
  return -std::ilogb(unit_roundoff(sum_type(kernel, precision))) -
         (has_block_scales(precision) ? kBlockScaleBits : 0);
}

ErrorBound error_bound(const KernelInfo& kernel, Precision precision, ElementType c_type,
                       const Scalars& scalars) {
  const Accumulation sums = sums_of(kernel, precision);
  const ElementType type = sum_type(kernel, precision);
  ErrorBound bound;
  if (!is_scaled(precision)) {
    // fp16 sums may come from FMAs or from tensor cores; the bound holds for both.
    bound.unit = (sums == Accumulation::fp32_fma           ? 1
                  : sums == Accumulation::fp32_tensor_core ? 3
                                                           : 4) *
                 unit_roundoff(type);
  } else {
    bound.unit = 3 * unit_roundoff(type);  // of the sum and of the scales
    if (sums == Accumulation::fp32_tensor_core && kernel.promoted_columns == 1) {
      bound.unit = (3 + 2) * unit_roundoff(type);  // fp8 multiplied as fp16, and the scales
    } else if (sums == Accumulation::fp32_tensor_core) {
      bound.chunk_unit = power_of_two(1 - kTensorCoreBits);
      bound.chunk = kernel.promoted_columns > 0 ? kernel.promoted_columns
                                                : std::numeric_limits<double>::infinity();
    }
  }
  bound.to_nearest = sums == Accumulation::fp32_fma;
  // A product and a sum, each flushed to zero when subnormal.
  bound.underflow = 2 * smallest_normal(type);
  bound.sum_overflow = overflow_threshold(type);
  bound.overflow = std::min(overflow_threshold(c_type), bound.sum_overflow);
  if (c_type != ElementType::f32 && c_type != ElementType::f64) {
    bound.output_unit = unit_roundoff(c_type);
    bound.output_absolute = smallest_subnormal(c_type) / 2;
  }
  if (!scalars.plain()) {
    // Two roundings, and what they make of the errors before them: at most as much.
    const double scale = std::abs(scalars.alpha);
    bound.scaling = 4 * unit_roundoff(type);
    bound.scaling_absolute = 3 * smallest_normal(type);
    bound.underflow *= std::max(scale, 1.0);
    if (!takes_scalars(kernel) && bound.output_unit > 0) {
      bound.scaling += bound.output_unit;
      bound.scaling_absolute += scale * bound.output_absolute;
    }
  }
  return bound;
}

double mean_square_error(const ErrorBound& bound, double k, double squares) {
  const double relative =
      relative_growth(bound, bound.to_nearest ? std::sqrt(k) : k) + bound.output_unit;
  const double absolute = k * bound.underflow + bound.scaling_absolute + bound.output_absolute;
  return relative * relative * squares + absolute * absolute;
}

double mean_error(const CsrMatrix& a, std::int64_t n, const ErrorBound& bound,
                  const Update& update) {
  constexpr double kMeanSquareOfB = 1.0 / 3;
  double squares = 0;  // of one column
#pragma omp parallel for schedule(dynamic, 1024) reduction(+ : squares)
  for (std::int64_t row = 0; row < a.rows; ++row) {
    double norm = update.beta * update.beta;
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e) {
      const double value = update.alpha * a.scale * a.value(e) * block_scale(a, row, a.col_idx[e]);
      if (std::isfinite(value)) norm += value * value;
    }
    squares +=
        mean_square_error(bound, static_cast<double>(a.row_length(row)), norm * kMeanSquareOfB);
  }
  return kMeanMargin * std::sqrt(static_cast<double>(n) * squares);
}

}  // namespace spmmbench
