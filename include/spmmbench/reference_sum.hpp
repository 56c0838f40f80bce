#pragma once
// One element of the reference, as its products are added. Host and device use the same sums.

#include <cmath>
#include <type_traits>

#include "spmmbench/host_device.hpp"

namespace spmmbench {

SPMMBENCH_HOST_DEVICE inline double at_least(double least, double finite) {
#if defined(__CUDA_ARCH__)
  return fmax(finite, least);
#else  // where fmax is a call
  return finite < least ? least : finite;
#endif
}

// In fp64, for precisions of at most 24 bits, whose products fp64 holds.
struct alignas(16) ReferenceSum {
  double sum = 0, magnitude = 0;  // Cref, and |A||B| over the finite products
  static constexpr double low = 0;

  // `least`: the least normal number of the type of A and B. In |A||B| a smaller factor counts as
  // that (error_bound.hpp).
  SPMMBENCH_HOST_DEVICE void add(double a, double b, double least) {
    const double product = a * b;
    sum += product;
    if (product != 0 && std::isfinite(product))
      magnitude += at_least(least, fabs(a)) * at_least(least, fabs(b));
  }
  // `scale`: of the block of A times that of the block of B, above 0.
  SPMMBENCH_HOST_DEVICE void add_scaled(double a, double b, double least, double scale) {
    ReferenceSum product;
    product.add(a, b, least);
    product.finish(scale);
    add(product);
  }
  SPMMBENCH_HOST_DEVICE void add(const ReferenceSum& other) {
    sum += other.sum;
    magnitude += other.magnitude;
  }
  // After the last product: times the scales of A and B.
  SPMMBENCH_HOST_DEVICE void finish(double scale) {
    sum *= scale;
    magnitude *= scale;
  }
};

// As two terms, for products in fp64. Each product is split into what fp64 rounds it to and its
// rounding error, by a fused multiplication and addition; each sum likewise (Knuth's TwoSum). The
// errors are added up in `low`. So Cref errs as if it were computed with 106 bits and then rounded
// to them (Ogita, Rump, Oishi, SIAM J. Sci. Comput. 26(6), 2005, Dot2).
struct TwoTermSum {
  double sum = 0, low = 0;  // Cref is their sum; low is 0 where it is not finite
  // |A||B| over the products of finite numbers: infinite where one of them overflows.
  double magnitude = 0;

  SPMMBENCH_HOST_DEVICE void add(double a, double b, double /*least*/ = 0) {
#if defined(__CUDA_ARCH__)
    const double product = __dmul_rn(a, b);  // the compiler must not fuse it with the sum
#else
    const double product = a * b;
#endif
    add_term(product);
    low += fma(a, b, -product);
    if (std::isfinite(a) && std::isfinite(b)) magnitude += fabs(product);
  }
  // fp64 has no scales of blocks.
  SPMMBENCH_HOST_DEVICE void add_scaled(double a, double b, double /*least*/, double /*scale*/) {
    add(a, b);
  }
  SPMMBENCH_HOST_DEVICE void add(const TwoTermSum& other) {
    add_term(other.sum);
    low += other.low;
    magnitude += other.magnitude;
  }
  // After the last product: `sum` is Cref rounded once, and `low` the rest. fp64 has no scales.
  SPMMBENCH_HOST_DEVICE void finish(double /*scale*/ = 1) {
    const double rest = low;
    low = 0;
    if (!std::isfinite(sum)) return;
    add_term(rest);
  }

 private:
  SPMMBENCH_HOST_DEVICE void add_term(double term) {
    const double before = sum;
    sum += term;
    const double added = sum - before;
    low += (before - (sum - added)) + (term - added);
  }
};

// For operands stored as T.
template <class T>
using ReferenceSumOf = std::conditional_t<std::is_same_v<T, double>, TwoTermSum, ReferenceSum>;

}  // namespace spmmbench
