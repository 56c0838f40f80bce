#pragma once
// One case: prepare the plan of a kernel, run the exact test, verify two launches into a poisoned
// C, time hot and cold launches, on the CPU each of a B with other values, verify the C that the
// timed launches left, and verify a few more launches into a poisoned C. Every exception becomes
// the status and reason of the row.

#include <functional>
#include <memory>
#include <span>

#include "measure/exact_test.hpp"
#include "measure/kernel_choice.hpp"
#include "measure/operands.hpp"
#include "spmmbench/result.hpp"
#include "spmmbench/verdict.hpp"
#include "timing/stopping.hpp"

namespace spmmbench {

// A as one kernel prepared it. The first case that needs it makes it; cases of other N share it.
struct PreparedA {
  std::unique_ptr<Prepared> kernel_a;
  StageTimer stages;                  // the time of making it
  std::unique_ptr<Prepared> exact_a;  // with the values of the exact test
  std::string exact_kernel;           // that prepared it: another where `auto` measured and picked
};

// A preparation of less than kShortPreparationMs is made kShortPreparations times, so that one that
// was held up does not count (docs/decisions/preparation.md). Both are choices: a stall of 4 to 20
// ms is much of a short preparation and little of a long one. If A was already prepared and binding
// took under kLeastStallMs, it is not repeated: stalls last 3.5 ms and more. Where
// Kernel::supports takes more than kLeastStallMs, it counts as preparation.
inline constexpr int kShortPreparations = 3;
inline constexpr double kShortPreparationMs = 50, kLeastStallMs = 1;

inline constexpr const char* kProfileRange = "spmmbench";  // NVTX range of the profiled launch

struct CaseInput {
  const KernelChoice* choice = nullptr;
  Problem problem;  // its options are those of the choice
  PreparedA* prepared = nullptr;
  Device* device = nullptr;  // where the kernel runs; the host device when there is no GPU
  const Operands* operands = nullptr;  // null when they could not be made
  std::string operands_error;          // why not
  ReferenceChecker* reference = nullptr;
  std::uint64_t a_checksum = 0;       // checksum_of_a, before any kernel had A
  ExactOperands* exact = nullptr;     // null: without the exact test
  std::function<void()> free_memory;  // frees device memory that is kept only for speed
  double bound_us = 0;                // compulsory bytes over the device's copy bandwidth
  double compulsory_bytes = 0;
  // B has random values, as a product meets them that change from call to call; else it stays.
  bool b_is_drawn = true;
  // Saves A, B and C of a wrong result, and returns where; null: none are saved.
  std::function<std::string(const ResultRow&, const Problem&, const DenseView& b)> save_wrong;
  // Brings the C of the last launch to the operands, where launches leave it in memory of their
  // own; null: they write it there.
  std::function<void()> take_c;
  bool repeat_check = false;  // verify repeated launches and compare their bits
  std::span<const std::int64_t> calls_curve = {};  // numbers of calls to measure with preparation
  bool one_launch = false;  // alone on the device, between profiler brackets, instead of timing
};

// Fills the members of `row` that the measurement gives. Returns false when the device is lost.
// Throws only Interrupted.
bool run_case(const CaseInput& input, const SampleLimits& limits, ResultRow& row);

void add_stages(const StageTimer& stages, ResultRow& row);

// A warning, in one line, where the error of a correct result is larger than independent rounding
// errors explain; else empty.
std::string error_warning(const ResultRow& row);

// Compulsory bytes: A in CSR (columns in 4 bytes, and row pointers too while nnz < 2^31), every
// referenced row of B once, and C once.
double compulsory_bytes(const CsrMatrix& a, std::int64_t n, Precision precision,
                        ElementType c_type);

}  // namespace spmmbench
