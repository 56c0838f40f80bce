#pragma once
// Launches that follow one another in a stream, of a matrix whose product has the bits of B.
// Kernels start before their predecessor has ended, and must neither read B nor write C before.

#include <functional>
#include <memory>

#include "kernel_cases.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/matrix.hpp"

namespace spmmbench::test {

// Row i takes row i + 1 of B, from between `entries` - 1 zeros that are stored.
CsrMatrix shift_by_one(std::int64_t rows, std::int64_t entries);

class Chain {
 public:
  // Of `a`, which is that of shift_by_one. Null where the kernel refuses the problem.
  static std::unique_ptr<Chain> make(const Case& of, const CsrMatrix& a, std::int64_t n,
                                     Device& device);
  virtual ~Chain() = default;

  // C of one launch is B of the next, after `between` has had it. The last C must be the first B,
  // shifted.
  virtual void expect_shifted(int launches,
                              const std::function<void(const DenseView&, int)>& between = {}) = 0;
  // All launches have one C, and two B by turns. C must be that of the last.
  virtual void expect_last(int launches) = 0;
};

}  // namespace spmmbench::test
