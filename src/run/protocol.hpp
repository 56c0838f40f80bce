#pragma once
// Writes what decides what a run measures, and how, to the context of its document, and reads it
// back.

#include <map>
#include <string>

#include "run/work.hpp"
#include "spmmbench/result.hpp"

namespace spmmbench {

std::map<std::string, std::string> protocol_of(const Cases& cases, const Protocol& how);

// Measures in the way that this context describes, on the same device. Names no case. Throws Error
// where the context lacks a setting.
Work work_of(const RunContext& context);

}  // namespace spmmbench
