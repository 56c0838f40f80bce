#pragma once
// The outcome of comparing one result with the fp64 reference.

#include <cstdint>
#include <limits>
#include <string>

#include "spmmbench/device.hpp"
#include "spmmbench/error_bound.hpp"
#include "spmmbench/update.hpp"

namespace spmmbench {

struct Verdict {
  bool ok = false;  // the largest error is within its bound
  // Over all elements: the largest |C - Cref| / bound, and where; infinity where no bound can hold
  // (NaN and infinity that the reference does not have, nonzeros in an empty row).
  double error_over_bound = 0;
  std::int64_t worst_row = 0;
  std::int64_t worst_col = 0;
  double error_over_typical = 0;  // the largest |C - Cref| / typical error
  // Elements that cannot be judged, because the order of the sums decides whether they overflow.
  std::int64_t incomparable = 0;
  // ||C - Cref||_F / ||Cref||_F over the finite elements. NaN where an element is NaN or infinite
  // and should not be.
  double relative_frobenius = 0;
  double error_frobenius = 0;  // ||C - Cref||_F over the same elements
  // error_frobenius / mean_error() (error_bound.hpp); NaN where B is not drawn at random.
  double error_over_mean = std::numeric_limits<double>::quiet_NaN();
};

// The outcome of the exact test: the same structure with values for which every product and sum is
// exact, so that C must equal the reference, rounded once to its type.
struct ExactTest {
  bool passed = false;
  std::string not_made;                       // why there was no test; empty when there was
  std::int64_t worst_row = 0, worst_col = 0;  // the first difference; 0 when there is none
  double ms = 0;                              // the time of the test, its preparation included
  // Of the plan that is timed, with other values in place; else of a plan of its own.
  bool timed_plan = false;
};

// Holds A and a view of B on one device and checks products of them there. The reference is a plain
// CSR loop in fp64 that shares no code with any format or kernel. It may be kept between checks, so
// B must not change.
class ReferenceChecker {
 public:
  virtual ~ReferenceChecker() = default;
  virtual Verdict check(const DenseView& c, const ErrorBound& bound) = 0;
  // Every element must be the reference rounded once to C's type. error_over_bound is 0 where all
  // are, else infinity.
  virtual Verdict check_equal(const DenseView& c) = 0;
  // What later checks expect: C = A * B at first.
  void expect(const Update& update) { update_ = update; }
  const Update& expected() const { return update_; }
  // Frees memory that is kept only for speed.
  virtual void release_memory() {}

 private:
  Update update_;
};

}  // namespace spmmbench
