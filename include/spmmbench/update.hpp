#pragma once
// What the reference needs of C = alpha * A * B + beta * C: the scalars, and the values of C before
// the launch. Host and device use the same functions.

#include <cmath>
#include <cstdint>

#include "spmmbench/device.hpp"
#include "spmmbench/host_device.hpp"
#include "spmmbench/precision.hpp"
#include "spmmbench/random.hpp"
#include "spmmbench/reference_sum.hpp"

namespace spmmbench {

// The values of C before a launch that reads it: a function of their place.
struct StartOfC {
  Precision precision = Precision::fp32;  // that C's type holds
  std::uint64_t seed = 0;                 // of U(-1, 1)
  bool exact = false;                     // else values of the lattice
  Lattice lattice = {};

  SPMMBENCH_HOST_DEVICE constexpr double at(std::int64_t i, std::int64_t j) const {
    return exact ? lattice.b(i, j) : uniform_in(precision, seed, i, j);
  }
  void fill(const DenseView& c, Device& device) const {
    if (exact) device.fill_lattice(c, lattice);
    else device.fill_uniform(c, seed, precision);
  }
};

struct Update {
  double alpha = 1, beta = 0;  // Scalars, as they are multiplied
  StartOfC start = {};         // not read if beta is 0

  SPMMBENCH_HOST_DEVICE constexpr bool plain() const { return alpha == 1 && beta == 0; }
};

// Element (i, j) of the update, of the finished sum of its products.
SPMMBENCH_HOST_DEVICE inline ReferenceSum updated(ReferenceSum product, const Update& update,
                                                  double before) {
  product.sum *= update.alpha;
  product.magnitude *= fabs(update.alpha);
  if (update.beta == 0) return product;
  product.sum += update.beta * before;
  product.magnitude += fabs(update.beta * before);
  return product;
}
SPMMBENCH_HOST_DEVICE inline TwoTermSum updated(const TwoTermSum& product, const Update& update,
                                                double before) {
  TwoTermSum sum;
  sum.add(update.alpha, product.sum);
  sum.add(update.alpha, product.low);
  if (update.beta != 0) sum.add(update.beta, before);
  sum.finish();
  sum.magnitude = fabs(update.alpha) * product.magnitude;
  if (update.beta != 0) sum.magnitude += fabs(update.beta * before);
  return sum;
}
template <class Sum>
SPMMBENCH_HOST_DEVICE Sum updated(const Sum& product, const Update& update, std::int64_t i,
                                  std::int64_t j) {
  if (update.plain()) return product;
  return updated(product, update, update.beta == 0 ? 0 : update.start.at(i, j));
}

}  // namespace spmmbench
