#pragma once
// The error bound of a kernel, from its KernelInfo. spmmbench/error_bound.hpp has the derivation.

#include "spmmbench/error_bound.hpp"
#include "spmmbench/kernel.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/scalars.hpp"
#include "spmmbench/update.hpp"

namespace spmmbench {

// What the kernel may round its sums to.
ElementType sum_type(const KernelInfo& kernel, Precision precision);
// The bits that its sums have at least, of whole numbers: 24 in fp32. With scales of blocks without
// those that the scales of the exact test take.
int sum_bits(const KernelInfo& kernel, Precision precision);

ErrorBound error_bound(const KernelInfo& kernel, Precision precision, ElementType c_type,
                       const Scalars& scalars = {});

// What ||C - Cref||_F may be, for a B of `n` columns whose elements are drawn independently from
// U(-1, 1). The root mean square of the error over all such B is at most
//
//   sqrt(sum over rows i of n * ((r_i unit + output_unit)^2 |a_i|^2 / 3 + (k_i underflow +
//   output_absolute)^2))
//
// For an element errs by at most `unit` times a partial sum for each of its k_i nonzeros
// (error_bound.hpp has S there, the largest that a partial sum can be). Any partial sum of
// independent products of mean zero has a mean square of at most that of the whole, |a_i|^2 / 3.
// Where sums are truncated, as by tensor cores, r_i is k_i, whatever way each of them is rounded: a
// root mean square of a sum is at most the sum of root mean squares (Minkowski). Where they are
// rounded to the nearest number, r_i is sqrt(k_i): an error then has mean zero whatever those
// before it were, and mean squares add up. (That is a model: B's last bits are random, and so are
// those that a rounding cuts off.) The result is kMeanMargin times this. By Markov's inequality a
// right kernel exceeds it with a probability of at most 1/64. Its errors are in fact below 1 /
// kMeanMargin of it, and vary little, being a sum over all elements.
//
// With scalars, a row of A is alpha times as long, and has another element, beta, which C's own
// values meet. They are drawn likewise.
inline constexpr double kMeanMargin = 8;
// The mean square error of one element. `squares` is the sum of the squares of its k products,
// whose signs are random.
double mean_square_error(const ErrorBound& bound, double k, double squares);
double mean_error(const CsrMatrix& a, std::int64_t n, const ErrorBound& bound,
                  const Update& update = {});

}  // namespace spmmbench
