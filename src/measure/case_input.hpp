#pragma once
// What one case is made of.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/batch.hpp"
#include "measure/exact_test.hpp"
#include "measure/kernel_choice.hpp"
#include "measure/operands.hpp"
#include "spmmbench/error_bound.hpp"
#include "spmmbench/result.hpp"
#include "spmmbench/scalars.hpp"
#include "spmmbench/stage_timer.hpp"
#include "spmmbench/update.hpp"
#include "spmmbench/verdict.hpp"

namespace spmmbench {

// What cases of one A and one update need of it. Each takes a pass over A, which only the first
// case makes that needs it.
struct FoundInA {
  // What all errors together may be (verify/bound.hpp).
  struct MeanError {
    std::int64_t n;
    ErrorBound bound;
    double error;
  };
  std::vector<MeanError> mean_errors;
  std::optional<std::int64_t> values_not_zero;
};

struct CaseInput {
  const KernelChoice* choice = nullptr;
  Problem problem;              // its options are those of the choice
  Spec reorder = {"none", {}};  // the order that A's rows are in
  DeviceKind a_memory =
      DeviceKind::host;  // where A lies before it is prepared, if the kernel is of the GPU
  PreparedA* prepared = nullptr;
  Device* device = nullptr;  // where the kernel runs; the host device when there is no GPU
  const Operands* operands = nullptr;  // null when they could not be made
  std::string operands_error;          // why not
  ReferenceChecker* reference = nullptr;
  std::int64_t members = 1;  // of a row-major batch: so often a plan is launched (batch.hpp)
  const Diagonal* diagonal = nullptr;  // A to the checks of a batch; null: A itself
  Update update = {};                  // what launches make of C
  std::uint64_t a_checksum = 0;        // checksum_of_a, before any kernel had A
  ExactOperands* exact = nullptr;      // null: without the exact test
  std::function<void()> free_memory;   // frees device memory that is kept only for speed
  double bound_us = 0;                 // compulsory bytes over the device's copy bandwidth
  double compulsory_bytes = 0;
  // B has random values, as a product meets them that change from call to call; else it stays.
  bool b_is_drawn = true;
  // Saves A, B and C of a wrong result, and returns where; null: none are saved.
  std::function<std::string(const ResultRow&, const Problem&, const DenseView& b, const Update&)>
      save_wrong;
  // Brings the C of the last launch to the operands, where launches leave it in memory of their
  // own; null: they write it there.
  std::function<void()> take_c;
  bool repeat_check = false;  // verify repeated launches and compare their bits
  std::span<const std::int64_t> calls_curve = {};  // numbers of calls to measure with preparation
  bool one_launch = false;  // alone on the device, between profiler brackets, instead of timing

  std::shared_ptr<FoundInA> found = std::make_shared<FoundInA>();  // of checked_a()

  // A kernel of the CPU has A in host memory whatever was asked for.
  DeviceKind a_lies_on() const {
    return problem.on_device != nullptr ? a_memory : DeviceKind::host;
  }
  Scalars scalars() const { return {update.alpha, update.beta}; }
  const CsrMatrix& checked_a() const { return diagonal != nullptr ? diagonal->a : *problem.a; }
  std::span<const std::int32_t> checked_row_ids() const {
    return diagonal != nullptr ? diagonal->row_ids : problem.row_ids;
  }
};

}  // namespace spmmbench
