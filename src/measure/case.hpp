#pragma once
// One case: prepare the plan of a kernel, verify two launches into a poisoned C, time hot and cold
// launches, each of a B with other values, verify the C that the timed launches left, and verify a
// few more launches into a poisoned C. A plan that takes new values in place passes the exact test
// then; for others a plan of its own does before. Every exception becomes the status and reason of
// the row.

#include <cstdint>
#include <optional>
#include <string>

#include "measure/case_input.hpp"
#include "spmmbench/result.hpp"
#include "timing/stopping.hpp"

namespace spmmbench {

inline constexpr const char* kProfileRange = "spmmbench";  // NVTX range of the profiled launch

// Fills the members of `row` that the measurement gives. Returns false when the device is lost.
// Throws only Interrupted.
bool run_case(const CaseInput& input, const SampleLimits& limits, ResultRow& row);

// A warning, in one line, where the error of a correct result is larger than independent rounding
// errors explain; else empty.
std::string error_warning(const ResultRow& row);

// Columns of A that have a nonzero: as many rows of B does a product need.
std::int64_t count_referenced_columns(const CsrMatrix& a);

// Compulsory bytes: A in CSR (columns in 4 bytes, and row pointers too while nnz < 2^31), every
// referenced row of B once, and C once, twice where it is read. `referenced`: how many those are,
// where that is known.
double compulsory_bytes(const CsrMatrix& a, std::int64_t n, Precision precision, ElementType c_type,
                        bool reads_c = false, std::optional<std::int64_t> referenced = {});

}  // namespace spmmbench
