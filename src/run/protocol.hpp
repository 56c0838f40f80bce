#pragma once
// How a run measures and what of: the part of its options that the context of its document keeps,
// and back from there.

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
