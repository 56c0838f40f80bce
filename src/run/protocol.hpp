#pragma once
// Writes the options that decide what a run measures, and how, to the context of its document, and
// reads them back.

#include <map>
#include <string>

#include "run/plan.hpp"
#include "spmmbench/result.hpp"

namespace spmmbench {

std::map<std::string, std::string> protocol_of(const RunOptions& options);

// The options to measure in the way that this context describes, on the same device. Throws Error
// where it lacks a setting.
RunOptions options_of(const RunContext& context);

}  // namespace spmmbench
