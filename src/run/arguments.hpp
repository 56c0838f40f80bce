#pragma once
// Options turned back into the arguments that stand for them: for the command that reproduces a
// row, and for child processes.

#include <string>
#include <vector>

#include "run/plan.hpp"
#include "spmmbench/result.hpp"

namespace spmmbench {

// What identifies one case: everything that decides its result, nothing of how it is sampled.
std::vector<std::string> case_arguments(const RunOptions& options, const ResultRow& row);

// Sampling limits, device and --jsonl: what a child is told besides what to measure.
std::vector<std::string> child_arguments(const RunOptions& options, int device);

// All cases of one input.
std::vector<std::string> input_arguments(const RunOptions& options, const std::string& input);

std::string shell_command(const std::vector<std::string>& arguments);  // quoted where needed
// The inverse. Throws Error for an open quote; nothing but blanks, single quotes and backslashes is
// special.
std::vector<std::string> split_command(const std::string& command);

}  // namespace spmmbench
