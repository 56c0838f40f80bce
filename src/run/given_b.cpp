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

}  // namespace spmmbench
