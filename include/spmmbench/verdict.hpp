#pragma once
// The outcome of comparing one result with the fp64 reference, and the bound it is compared
// against.

#include <cstdint>

#include "spmmbench/device.hpp"

namespace spmmbench {

// |C - Cref|_ij <= g + output_unit * (|Cref|_ij + g) + output_absolute with g = min(k * unit, 1) *
// (|A| |B|)_ij and k the nonzeros of row i. A row without nonzeros must be exactly zero. Derived in
// src/verify/bound.cpp.
struct ErrorBound {
  double unit = 0;             // growth per product and sum
  double output_unit = 0;      // relative rounding on storing C; 0 for fp32
  double output_absolute = 0;  // half the smallest subnormal of C's type; 0 for fp32
};

struct Verdict {
  bool ok = false;
  // Largest |C - Cref| / bound over all elements; infinity for NaN, Inf and nonzeros in an empty
  // row.
  double error_over_bound = 0;
  std::int64_t worst_row = 0;
  std::int64_t worst_col = 0;
  double relative_frobenius = 0;  // ||C - Cref||_F / ||Cref||_F; NaN when C is not finite
};

// Holds A and sees B on one device, and checks products of them there, against a straight CSR loop
// in fp64 that shares no code with any format or kernel. May keep the reference between checks, so
// B must not change.
class ReferenceChecker {
 public:
  virtual ~ReferenceChecker() = default;
  virtual Verdict check(const DenseView& c, const ErrorBound& bound) = 0;
  // Gives back what is only kept to be faster.
  virtual void release_memory() {}
};

}  // namespace spmmbench
