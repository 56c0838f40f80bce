#pragma once
// What a rank multiplies by itself: its part of A, or all of A on rank 0 for the time of one GPU.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "gpu/csr_on_device.hpp"
#include "measure/case.hpp"
#include "measure/exact_test.hpp"
#include "measure/kernel_choice.hpp"
#include "measure/operands.hpp"
#include "multi/partition.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/random.hpp"
#include "spmmbench/reordering.hpp"
#include "timing/stopping.hpp"

namespace spmmbench {

// A on a device, for any kernel and N. Its values are rounded to the precision.
class LocalA {
 public:
  LocalA(CsrMatrix a, Precision precision, Device& device);
  LocalA(const LocalA&) = delete;  // the orders point into it
  LocalA& operator=(const LocalA&) = delete;

  const CsrMatrix& csr() const { return a_; }
  SparseOperand operand() const;
  std::uint64_t checksum() const { return checksum_; }

 private:
  CsrMatrix a_;
  Precision precision_;
  std::unique_ptr<RowOrders> orders_;
  std::optional<CsrOnDevice> resident_;  // on a GPU
  std::uint64_t checksum_;
};

// The product of a part by one kernel, with a B of one shape. All arguments outlive it.
class LocalProduct {
 public:
  // `rows`: those of the drawn B that this one has (make_operands).
  LocalProduct(const LocalA& a, const KernelChoice& choice, const Shape& shape,
               std::span<const std::int32_t> rows, std::uint64_t seed, Device& device);
  LocalProduct(const LocalProduct&) = delete;
  LocalProduct& operator=(const LocalProduct&) = delete;

  // As every case is measured, by itself. False where the device is lost.
  bool run(const SampleLimits& limits, ResultRow& row);
  // After `run` has given a row that is ok.
  std::unique_ptr<Plan> bind();

  const CaseInput& input() const { return input_; }

 private:
  PreparedA prepared_;
  Operands operands_;
  std::unique_ptr<ReferenceChecker> reference_;
  ExactOperands exact_;
  CaseInput input_;
};

// The part's A with the values of a lattice: row i is row first_row + i of the whole A, and column
// j column original[j].
CsrMatrix with_lattice_of_whole(CsrMatrix part, std::int64_t first_row,
                                std::span<const std::int32_t> original, const Lattice& lattice);

}  // namespace spmmbench
