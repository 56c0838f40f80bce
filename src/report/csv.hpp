#pragma once
// Result rows as CSV: the JSON row, flat. Columns are fixed; kernel parameters and metrics go into
// one column each as `key=value;key=value`. Raw samples stay in the JSON.

#include <string>

#include "spmmbench/result.hpp"

namespace spmmbench {

std::string csv_header();
std::string csv_line(const ResultRow& row);

}  // namespace spmmbench
