#pragma once
// The exact test of a case. The kernel multiplies the structure of A with values for which every
// product and sum is exact (verify/exact.hpp), and its C must equal the reference. Where the kernel
// takes new values in place, the plan is the one that was timed, else one of its own. The test has
// operands of its own, and its time counts in no stage.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "gpu/scaled_launches.hpp"
#include "measure/batch.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/kernel.hpp"
#include "spmmbench/random.hpp"
#include "spmmbench/scalars.hpp"
#include "spmmbench/stage_timer.hpp"
#include "spmmbench/update.hpp"
#include "spmmbench/verdict.hpp"

namespace spmmbench {

// No values are exact: rows are too long, or A has others than numbers and keeps them.
class NotExact : public Error {
 public:
  using Error::Error;
};

// What the exact test has to know of a kernel.
struct ExactTraits {
  bool binary = false;   // all values of A are 1 and stay 1
  int sum_bits = 24;     // those that sums have
  bool keeps_a = false;  // no other A can be had: an element of C is at most one product
  bool packed = false;   // lines of B follow each other without a gap
  Precision precision = Precision::fp32;  // of A and B
};

// The bits that sums of the test may have where a kernel multiplies by scalars: fewer than its sums
// have, so that scalars of two bits and C's own values find place, and no more than C holds where
// the product is stored in it first.
int exact_sum_bits(const KernelInfo& kernel, Precision precision, ElementType c_type,
                   const Scalars& scalars);

// A and B with such values, and the reference of their product. Each is made when a case first
// needs it. A given B keeps its zeros, unless every product with it is zero: the test would then
// test nothing. `a`, `row_ids` and `given_b` (null: none) must outlive this object.
class ExactOperands {
 public:
  ExactOperands(const CsrMatrix& a, std::span<const std::int32_t> row_ids,
                const DenseMatrix* given_b, std::uint64_t seed, ExactTraits traits = {})
      : original_(a), row_ids_(row_ids), given_b_(given_b), seed_(seed), traits_(traits) {}

  const CsrMatrix& a();  // throws NotExact
  int sum_bits() const { return traits_.sum_bits; }
  bool can_be_made();  // whether a() has values
  // The same in sums of other bits.
  ExactOperands with_sum_bits(int bits) const;
  // The scalars of the test: those given, rounded to two bits, 1/4 at the least and 6 at the most;
  // and values of C that are exact with them. After a().
  Update update(const Update& given) const;

  struct OnDevice {
    Buffer b_memory, scales_memory;  // with scales of the blocks of B
    DenseView b;
    const CsrMatrix* a = nullptr;  // as the reference has it: a(), or on a diagonal for a batch
    std::span<const std::int32_t> row_ids;
    std::unique_ptr<ReferenceChecker> reference;
  };
  // `members`: of a row-major batch, which is checked with A on a diagonal. Lines of B are `ld_b`
  // of the problem apart, where that is not 0.
  const OnDevice& on_device(const Problem& problem, Device& device, std::int64_t members = 1);
  void fill(const DenseView& b, Precision precision, Device& device);
  // The values of a(), in the types and the memory of those that a kernel reads of A: of its copy
  // on a GPU, or in fp32 and fp64 of the host.
  std::vector<const void*> values(const SparseOperand& like, Device& device);
  // a() in the memory of a GPU in which A lies: the arrays of A, with other values. Null elsewhere,
  // and where blocks have scales. Until the next call, and as long as A's.
  const DeviceCsr* resident(const SparseOperand& like, Device& device);
  void release_memory() {  // on all devices
    on_device_.clear();
    copies_.clear();
    values_memory_ = {};
  }

 private:
  void fill_members(const DenseView& b, Device& device) const;

  const CsrMatrix& original_;
  std::span<const std::int32_t> row_ids_;
  const DenseMatrix* given_b_;
  std::uint64_t seed_;
  ExactTraits traits_;
  Lattice lattice_;
  bool keeps_zeros_ = false;  // those of the given B, unless its products are zero
  std::optional<CsrMatrix> a_;
  std::optional<Diagonal> diagonal_;
  std::optional<DenseMatrix> one_product_b_;  // where A keeps its values
  // By N, layout and what lies between lines of B.
  std::map<std::tuple<DeviceKind, std::int64_t, Layout, std::int64_t>, OnDevice> on_device_;
  Buffer values_memory_;
  DeviceCsr resident_;
  std::map<DeviceKind, std::shared_ptr<void>> copies_;  // of A, for references
};

// A as one kernel prepared it. The first case that needs it makes it; cases of other N share it.
struct PreparedA {
  std::shared_ptr<Prepared> kernel_a;
  bool has_other_values = false;      // than A, since a test of it has failed
  StageTimer stages;                  // the time of making it
  std::unique_ptr<Prepared> exact_a;  // with the values of the exact test
  std::string exact_kernel;           // that prepared it: another where `auto` measured and picked
};

// What the exact test needs of a case; `take_c`, `update` and `members` are as in CaseInput.
struct ExactSetting {
  Problem problem;
  ExactOperands& operands;
  const DenseView& c;
  Device& device;
  std::function<void()> take_c = {};
  Update update = {};
  std::int64_t members = 1;
  std::string pick = {};  // the kernel that is launched, where the one that is tested picks others
};

struct ExactOutcome {
  ExactTest test;
  double kernel_ms = 0;          // of the test, in the kernel's own calls
  bool from_same_memory = true;  // A of the test lies in memory of the device, as that of the case
};

// The test of a plan of its own. `prepared` is made by the first case of a kernel and shared with
// the cases of other N. Where rows are too long or memory is short, ExactTest::not_made says so.
// Throws what else the kernel fails with, which ends the case: its launches were not tested.
ExactOutcome run_exact_test(const Kernel& kernel, const ExactSetting& setting,
                            std::unique_ptr<Prepared>& prepared);

// The same of the plan that `launches` launches, of `prepared`. A gets the values of the test in
// place, and then its own again.
ExactTest test_timed_plan(const ExactSetting& setting, const KernelInfo& kernel,
                          PreparedA& prepared, ScaledLaunches& launches);

}  // namespace spmmbench
