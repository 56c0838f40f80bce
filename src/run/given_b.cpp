#include "run/given_b.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

#include "spmmbench/error.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench {

void expect_finite(const DenseMatrix& b, const std::string& name,
                   const std::vector<PrecisionGroup>& groups) {
  for (const PrecisionGroup& group : groups) {
    const auto count = static_cast<std::int64_t>(b.values.size());
    std::int64_t at = 0;
    while (at < count && std::isfinite(round_to(group.precision, b.value(at)))) ++at;
    if (at == count) continue;
    throw Error(
        fmt::format("{}: row {}, column {} of B, from 0, is {}: expected numbers that are "
                    "finite in {}",
                    name, at / b.cols, at % b.cols, static_cast<float>(b.value(at)),
                    to_string(group.precision)));
  }
}

}  // namespace spmmbench
