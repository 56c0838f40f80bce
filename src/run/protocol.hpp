#pragma once
// The options of a run that decide what is measured and how: to the context of its document, and
// back from there.

#include <map>
#include <string>

#include "run/plan.hpp"
#include "spmmbench/result.hpp"

namespace spmmbench {

std::map<std::string, std::string> protocol_of(const RunOptions& options);

// Options that measure as the document with this context says, on the same device. Throws Error
// where the document lacks a setting.
RunOptions options_of(const RunContext& context);

}  // namespace spmmbench
