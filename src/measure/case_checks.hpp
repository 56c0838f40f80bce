#pragma once
// What is checked of the C of a case, and what its row then says.

#include <functional>
#include <string>

#include "measure/case_input.hpp"
#include "spmmbench/error_bound.hpp"
#include "spmmbench/verdict.hpp"

namespace spmmbench {

ErrorBound bound_of(const CaseInput& input);

// C before a launch of the case.
void start_c(const CaseInput& input);

// Brings the C of the last launch to the operands, where CaseInput::take_c says how.
void take_c(const CaseInput& input);
// A launch and take_c, after start_c where the launch reads C. `input` outlives it.
std::function<void()> start_and_launch(const CaseInput& input, std::function<void()> launch);

// Where C is wrong, or a launch wrote to B or outside of C, the row says so and the result is
// false. `which`: the launch, if it is one of several. `known`: C has the bits of one that was
// right.
bool verify(const CaseInput& input, ResultRow& row, const std::string& which = {},
            bool known = false);

void call_wrong(const CaseInput& input, ResultRow& row, const std::string& fault);

// How the exact test failed, and where its operands were saved. Comes before C is written again.
std::string describe_failure(const CaseInput& input, const ResultRow& row);

// Says why a C that was found right proves nothing; empty where it does. Without the exact test the
// bound alone is left, and where it is as large as |A||B| it lets zeros pass.
std::string why_unproved(const CaseInput& input, const ResultRow& row);

}  // namespace spmmbench
