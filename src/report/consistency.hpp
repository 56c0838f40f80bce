#pragma once
// Whether a recorded row can be what a run has measured. A document may have been edited, or
// written by something else.

#include <string>
#include <vector>

#include "spmmbench/result.hpp"

namespace spmmbench {

// What in the row contradicts the rest of it, such as "is ok with an error of 50 x its bound".
// Empty where nothing does.
std::string contradiction_in(const ResultRow& row);

// Throws Error naming the file at `path` where a row contradicts itself, or two rows are of the
// same case of one matrix file.
void require_consistent(const std::string& path, const std::vector<ResultRow>& rows);

}  // namespace spmmbench
