#pragma once

#include <cstdint>

#include "rsh/format.hpp"

namespace spmmbench::rsh {

// Rows of equal length together, as in RsTile; `rows` are rows of C, and the rows of A without any
// entry are those of length 0.
struct Residual {
  static constexpr int kLengths = RsTile::kMaxResidualLength + 1;

  const std::int32_t* rows;
  const std::int32_t* cols;
  const void* values;
  std::int32_t count;
  std::int32_t first[kLengths + 1];  // index into rows, per length
  std::int32_t entry[kLengths];      // index into cols and values, per length
};

}  // namespace spmmbench::rsh
