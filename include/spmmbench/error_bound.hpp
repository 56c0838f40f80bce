#pragma once
// The error bound of a kernel, derived from its arithmetic and not chosen, and the verdict on one
// element. Host and device use the same functions. With k the number of nonzeros in row i of A and
// S = (|A||B|)_ij:
//
//   |C - Cref|_ij <= g + output_unit * (|Cref|_ij + g) + output_absolute
//   g = min(k * unit + min(k, chunk) * chunk_unit, 1) * S + k * underflow
//
// unit, fp32 FMA: a sum of k rounded products in any order errs by at most gamma_k S, gamma_k ~ k
// u, u = 2^-24 (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1).
//
// unit, fp64: the same with u = 2^-53. The reference is a sum of two terms (reference_sum.hpp),
// which errs by about (k u)^2 S: less than the bound by the factor k u.
//
// unit, tensor cores: products of 16-bit and tf32 inputs are exact. Products and the accumulator
// are aligned to the largest of them and truncated, and so is their sum (verify/tensor_core.hpp).
// The largest one loses nothing; with one nonzero in an instruction all losses are below 2^-23 of
// the sum of magnitudes, with n below n times that: 2u per nonzero, on older GPUs too (Fasi,
// Higham, Mikaitis, Pranesh, PeerJ CS 7:e330, 2021). One u more is for parts that are added in
// fp32. In S a factor below the least normal number counts as that, since it is aligned like it.
//
// unit, fp8: products are exact. Two scales are multiplied, and values of A, or sums, by both: two
// roundings more, which for k > 0 are at most 2u per nonzero. Tensor cores align and truncate as
// above, to 13 bits behind the leading one (DeepSeek-V3, arXiv 2412.19437, section 3.3.2; MMA-Sim,
// arXiv 2511.10909), and so their sum: at most 2^-13 S for each nonzero.
//
// chunk: a kernel that adds the sums of every `chunk` columns of A in fp32 has such losses for the
// products of one chunk only, whose |A||B| add up to S: hence min(k, chunk) of them.
//
// underflow: a product or sum below the smallest normal number errs by at most half of the smallest
// subnormal number, or by its whole value where subnormals are flushed to zero.
//
// output_*: a 16-bit C adds its own rounding. Inputs add nothing, since both the kernels and the
// reference get rounded inputs. A row without nonzeros must be exactly zero.
//
// scaling: with C = alpha A B + beta C, S stands for |alpha| S + |beta C|, and g becomes
//
//   g = (min(k * unit + ..., 1) * (1 + scaling) + scaling) * S + k * underflow + scaling_absolute
//
// Each way from a product, or from C, to the result has at most two roundings more: a
// multiplication by a scalar and a sum. Another rounding follows where the product itself is stored
// in C's type. Where C takes part in the sum from the start, k * unit has what its k sums round.
//
// The typical error replaces k by lambda sqrt(k), lambda = 8: where rounding errors are independent
// with mean zero, an element exceeds it with a probability below 2k exp(-lambda^2 / 2) =
// 2.5e-14 k (Higham and Mary, SIAM J. Sci. Comput. 41(5), 2019, theorem 2.4). A larger error means
// that rounding favours a direction, or that there is a fault which the bound hides.

#include <cmath>
#include <limits>

#include "spmmbench/host_device.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench {

struct ErrorBound {
  double unit = 0;              // relative growth per nonzero
  double chunk_unit = 0;        // the same within a chunk of columns of A
  double chunk = 0;             // columns of a chunk
  double underflow = 0;         // absolute error per nonzero
  double scaling = 0;           // relative error of multiplying by scalars
  bool to_nearest = false;      // each sum is rounded to the nearest number, to either side
  double scaling_absolute = 0;  // what that adds where numbers are tiny
  double output_unit = 0;       // relative rounding on storing C; 0 where sums have C's type
  double output_absolute = 0;   // half the smallest subnormal of C's type; 0 likewise
  double overflow = overflow_threshold(ElementType::f32);      // C stores this and more as infinity
  double sum_overflow = overflow_threshold(ElementType::f32);  // sums of this and more overflow
};

// The verdict on one element of C.
struct ElementVerdict {
  double over_bound = 0;    // |C - Cref| / bound; infinity where no bound can hold
  double over_typical = 0;  // |C - Cref| / typical error
  double error = 0;         // C - Cref; 0 where both are the same NaN or infinity
  bool comparable = true;   // false: the order of the sums decides whether it overflows
};

// g for `terms` roundings, which is k, or lambda sqrt(k) for the typical error.
SPMMBENCH_HOST_DEVICE inline double relative_growth(const ErrorBound& bound, double terms) {
  const double sum = fmin(terms * bound.unit + fmin(terms, bound.chunk) * bound.chunk_unit, 1.0);
  return sum * (1 + bound.scaling) + bound.scaling;
}
SPMMBENCH_HOST_DEVICE inline double error_growth(const ErrorBound& bound, double abs_sum, double k,
                                                 double terms) {
  return relative_growth(bound, terms) * abs_sum + k * bound.underflow + bound.scaling_absolute;
}

SPMMBENCH_HOST_DEVICE inline double with_output(const ErrorBound& bound, double growth,
                                                double reference) {
  return growth + bound.output_unit * (fabs(reference) + growth) + bound.output_absolute;
}

// `abs_sum`: (|A||B|)_ij over the finite products; `k`: nonzeros of row i, more than 0.
SPMMBENCH_HOST_DEVICE inline double bound_at(const ErrorBound& bound, double abs_sum,
                                             double reference, double k) {
  return with_output(bound, error_growth(bound, abs_sum, k, k), reference);
}

SPMMBENCH_HOST_DEVICE inline double typical_at(const ErrorBound& bound, double abs_sum,
                                               double reference, double k) {
  constexpr double kLambda = 8;
  return with_output(bound, error_growth(bound, abs_sum, k, fmin(k, kLambda * sqrt(k))), reference);
}

// NaN and infinity are right where the reference has the same. Infinity is also right where C's
// type or the sums overflow. The reference is `reference` + `low`, where a product in fp64 has a
// second term. It is not finite only where an input is not, or where a product in fp64 overflows.
SPMMBENCH_HOST_DEVICE inline ElementVerdict judge(double c, double reference, double abs_sum,
                                                  double k, const ErrorBound& bound,
                                                  double low = 0) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr ElementVerdict kRight{};
  constexpr ElementVerdict kWrong{kInfinity, kInfinity, kNan, true};
  constexpr ElementVerdict kUnknown{0, 0, 0, false};
  if (k == 0 && abs_sum == 0) {
    if (c == 0) return kRight;
    return {kInfinity, kInfinity, c, true};
  }
  const double growth = error_growth(bound, abs_sum, k, k);
  // Every partial sum of finite products stays below this in magnitude.
  const bool sums_may_overflow = abs_sum + growth >= bound.sum_overflow;
  if (!std::isfinite(reference)) {
    const bool same = std::isnan(reference) ? std::isnan(c) : c == reference;
    return same ? kRight : sums_may_overflow ? kUnknown : kWrong;
  }
  if (std::isfinite(c)) {  // a sum that has overflowed never becomes finite again
    const double error = (c - reference) - low;
    if (error == 0) return kRight;
    const double allowed = bound_at(bound, abs_sum, reference, k);
    const double typical = typical_at(bound, abs_sum, reference, k);
    return {fabs(error) / allowed, fabs(error) / typical, error, true};  // over 0: infinity
  }
  if (!std::isnan(c) && (c > 0 ? reference : -reference) + growth >= bound.overflow) return kRight;
  return sums_may_overflow ? kUnknown : kWrong;
}

// For inputs whose products and sums are exact: C is the reference, rounded once to C's type.
SPMMBENCH_HOST_DEVICE inline ElementVerdict judge_equal(double c, double rounded_reference) {
  if (c == rounded_reference) return {};
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {kInfinity, kInfinity, c - rounded_reference, true};
}

}  // namespace spmmbench
