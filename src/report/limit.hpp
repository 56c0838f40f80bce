#pragma once
// How fast a row moved what it must move, and what its time goes to.

#include <optional>
#include <string>

#include "spmmbench/result.hpp"

namespace spmmbench {

// Compulsory bytes over the hot median, 1e9 per second; empty without them.
std::optional<double> gb_per_s(const ResultRow& row);

// In one word, the largest of the times that the parts of a launch on a GPU should take:
//   launch   the hot median is not much longer than that of a launch without work
//   output   C is written at the copy bandwidth
//   gathers  rows of B come from the L2 cache, one for each nonzero or packed column
//   padding  stored zeros of A are read at the copy bandwidth
//   A        so are its nonzeros and indices
// Empty without a hot time, on a CPU, and where these times together are less than a third of the
// hot median: it is then not what is moved that limits the row.
std::string limit_of(const ResultRow& row);

}  // namespace spmmbench
