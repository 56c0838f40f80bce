#pragma once
// The exact test of a case. The kernel prepares the structure of A with values for which every
// product and sum is exact (verify/exact.hpp), and its C must equal the reference. The test has
// operands of its own, and its time counts in no stage.

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>

#include "spmmbench/error.hpp"
#include "spmmbench/kernel.hpp"
#include "spmmbench/verdict.hpp"

namespace spmmbench {

// Rows are too long for values to be exact.
class TooLong : public Error {
 public:
  using Error::Error;
};

// A and B with such values, and the reference of their product. Each is made when a case first
// needs it. A given B keeps its zeros, unless every product with it is zero: the test would then
// test nothing. `a`, `row_ids` and `given_b` (null: none) must outlive this object.
class ExactOperands {
 public:
  // `binary`: all values of A are 1 and stay 1. `sums`: what sums are rounded to.
  ExactOperands(const CsrMatrix& a, std::span<const std::int32_t> row_ids,
                const DenseMatrix* given_b, std::uint64_t seed, bool binary = false,
                ElementType sums = ElementType::f32)
      : original_(a),
        row_ids_(row_ids),
        given_b_(given_b),
        seed_(seed),
        binary_(binary),
        sums_(sums) {}

  const CsrMatrix& a();  // throws TooLong

  struct OnDevice {
    Buffer b_memory;
    DenseView b;
    std::unique_ptr<ReferenceChecker> reference;
  };
  const OnDevice& on_device(const Problem& problem, Device& device);
  void fill(const DenseView& b, Precision precision, Device& device) const;
  void release_memory() { on_device_.clear(); }  // on all devices

 private:
  const CsrMatrix& original_;
  std::span<const std::int32_t> row_ids_;
  const DenseMatrix* given_b_;
  std::uint64_t seed_;
  bool binary_;
  ElementType sums_;
  int top_ = 0;
  bool keeps_zeros_ = false;  // those of the given B, unless its products are zero
  std::optional<CsrMatrix> a_;
  std::map<std::tuple<DeviceKind, std::int64_t, Layout>, OnDevice> on_device_;  // by N and layout
};

// `prepared` is made by the first case of a kernel and shared with the cases of other N; `c`
// belongs to this case. Where rows are too long or memory is short, ExactTest::not_made says so.
// Throws what else the kernel fails with, which ends the case: its launches were not tested.
ExactTest run_exact_test(const Kernel& kernel, Problem problem, ExactOperands& operands,
                         std::unique_ptr<Prepared>& prepared, const DenseView& c, Device& device);

}  // namespace spmmbench
