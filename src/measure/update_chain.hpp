#pragma once
// An element of C over launches of C = alpha * A * B + beta * C that follow one another, each from
// what the one before has stored.

#include <limits>

#include "spmmbench/error_bound.hpp"
#include "spmmbench/reference_sum.hpp"
#include "spmmbench/update.hpp"

namespace spmmbench {

class UpdateChain {
 public:
  // `k`: nonzeros of the row of A, at least 1; `start`: the element before the first launch.
  UpdateChain(const Update& update, const ErrorBound& bound, double k, double start)
      : update_(update), bound_(bound), k_(k), value_(start) {}

  void launch(const TwoTermSum& product);
  // Against the sum of what each launch may err by, and hands on. Nothing is said of an element
  // that may have overflowed.
  ElementVerdict judge(double c) const;
  double value() const { return static_cast<double>(value_); }
  // What the element may differ by. Infinity where nothing is said of it.
  double allowed() const {
    return comparable_ ? allowed_ : std::numeric_limits<double>::infinity();
  }

 private:
  Update update_;
  ErrorBound bound_;
  double k_;
  long double value_;  // fp64 would err as a kernel of fp64 does
  double allowed_ = 0, typical_ = 0;
  bool comparable_ = true;
};

}  // namespace spmmbench
