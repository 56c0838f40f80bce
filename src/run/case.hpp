#pragma once
// One case: prepare a kernel's plan, test it exactly, verify two poisoned launches, time it hot and
// cold, verify what the timed launches left. Every exception becomes the row's status and reason.

#include <functional>
#include <memory>

#include "run/exact_test.hpp"
#include "run/operands.hpp"
#include "run/plan.hpp"
#include "spmmbench/result.hpp"
#include "spmmbench/verdict.hpp"

namespace spmmbench {

// A as one kernel prepared it: made by the first case that needs it, shared by those of other N.
struct PreparedA {
  std::unique_ptr<Prepared> kernel_a;
  StageTimer stages;                  // what making it took
  std::unique_ptr<Prepared> exact_a;  // with the values of the exact test
};

struct CaseInput {
  const KernelChoice* choice = nullptr;
  Problem problem;  // options filled from the choice
  PreparedA* prepared = nullptr;
  Device* device = nullptr;  // where the kernel runs; the host device when there is no GPU
  const Operands* operands =
      nullptr;  // null when they could not be made: `operands_error` says why
  std::string operands_error;
  ReferenceChecker* reference = nullptr;
  ExactOperands* exact = nullptr;     // null: without the exact test
  std::function<void()> free_memory;  // gives back what the device holds only to be faster
  double bound_us = 0;                // compulsory bytes over the device's copy bandwidth
  double compulsory_bytes = 0;
  std::string save_failing;   // folder for what a wrong result came from; empty: none
  bool repeat_check = false;  // compare repeated launches bit by bit
  bool one_launch = false;    // alone on the device, between profiler brackets, instead of timing
};

// Fills everything of `row` that the caller does not know. Returns false when the device is lost.
// Throws only Interrupted.
bool run_case(const CaseInput& input, const NoiseLimit::Limits& limits, ResultRow& row);

// One line where a correct result errs by more than random rounding leaves; else empty.
std::string error_warning(const ResultRow& row);

// Bytes that any method moves: A in CSR (4-byte columns, 4-byte row pointers while nnz < 2^31),
// every referenced row of B once, C once.
double compulsory_bytes(const CsrMatrix& a, std::int64_t n, Precision precision,
                        ElementType c_type);

}  // namespace spmmbench
