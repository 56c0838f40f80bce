#include "run/given_b.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "spmmbench/error.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench {

void expect_finite(const DenseMatrix& b, const std::string& name,
                   const std::vector<PrecisionGroup>& groups) {
  for (const PrecisionGroup& group : groups) {
    const auto bad = std::find_if(b.values.begin(), b.values.end(), [&](float value) {
      return !std::isfinite(round_to(group.precision, value));
    });
    if (bad == b.values.end()) continue;
    const std::int64_t at = bad - b.values.begin();
    throw Error(
        fmt::format("{}: row {}, column {} of B, from 0, is {}: expected numbers that are "
                    "finite in {}",
                    name, at / b.cols, at % b.cols, *bad, to_string(group.precision)));
  }
}

bool only_zero_products(const CsrMatrix& a, const DenseMatrix& b) {
  std::vector<bool> zero(b.rows);
  for (std::int64_t row = 0; row < b.rows; ++row) {
    const auto begin = b.values.begin() + row * b.cols;
    zero[row] = std::all_of(begin, begin + b.cols, [](float value) { return value == 0; });
  }
  return std::all_of(a.col_idx.begin(), a.col_idx.end(),
                     [&](std::int32_t col) { return zero[col]; });
}

}  // namespace spmmbench
