#include "run/given_b.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

#include "core/greatest_magnitude.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench {

void expect_finite(const DenseMatrix& b, const std::string& name,
                   const std::vector<PrecisionGroup>& groups) {
  // What keeps the product of both scales within fp32, as the range of A does (operand_a.cpp).
  constexpr float kMostScaled = 0x1p40F;
  for (const PrecisionGroup& group : groups) {
    const float greatest = greatest_magnitude(b.values);
    const float scale = scale_of(group.precision, greatest);
    if (is_scaled(group.precision) && greatest > 0 &&
        (greatest > kMostScaled || greatest < 1 / kMostScaled))
      throw Error(
          fmt::format("{}: the greatest magnitude of B is {}: expected 2^-40 to 2^40, or 0, in {}",
                      name, greatest, to_string(group.precision)));
    const auto count = static_cast<std::int64_t>(b.values.size());
    std::int64_t at = 0;
    while (at < count && std::isfinite(round_to(group.precision, b.value(at) / scale))) ++at;
    if (at == count) continue;
    throw Error(
        fmt::format("{}: row {}, column {} of B, from 0, is {}: expected numbers that are "
                    "finite in {}",
                    name, at / b.cols, at % b.cols, static_cast<float>(b.value(at)),
                    to_string(group.precision)));
  }
}

}  // namespace spmmbench
