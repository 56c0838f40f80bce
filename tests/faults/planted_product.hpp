#pragma once
// Faults that a kernel may have and a bound on rounding errors cannot see in long rows.

#include <array>
#include <cstdint>

#include "spmmbench/matrix.hpp"

namespace spmmbench {

enum class ProductFault {
  none,
  drop,         // the nonzero in the middle of the longest row is left out
  twice,        // ... counts twice
  swap,         // ... and the one after it are multiplied by each other's row of B
  half_sums,    // sums are kept in fp16
  stale_strip,  // the last columns of C are written by the first two launches only
  kept,         // C of the first launch is given again while B lies in the same place
  clears_b,     // B becomes zero, and so does C
  skips,        // on the host: after the first launches only every fourth does any work
  looks,        // on the host: only launches that find a NaN in C do any work
};

struct PlantedProduct {
  const char* name;  // after "product_" or "product_gpu_"
  ProductFault fault;
};
inline constexpr std::array kPlantedProducts = {
    PlantedProduct{"right", ProductFault::none},
    PlantedProduct{"drop", ProductFault::drop},
    PlantedProduct{"twice", ProductFault::twice},
    PlantedProduct{"swap", ProductFault::swap},
    PlantedProduct{"half_sums", ProductFault::half_sums},
    PlantedProduct{"stale_strip", ProductFault::stale_strip},
    PlantedProduct{"kept", ProductFault::kept},
    PlantedProduct{"clears_b", ProductFault::clears_b},
};

inline constexpr std::array kLazyProducts = {
    PlantedProduct{"skips", ProductFault::skips},
    PlantedProduct{"looks", ProductFault::looks},
};

inline constexpr std::int64_t kStaleStrip = 4;  // columns
inline constexpr int kLaunchesBeforeStale = 2;
inline constexpr int kLaunchesBeforeLazy = 4;

// Where the fault lies: the nonzero in the middle of the longest row; -1 without nonzeros.
inline std::int64_t planted_entry(const CsrMatrix& a) {
  std::int64_t longest = 0;
  for (std::int64_t row = 1; row < a.rows; ++row)
    if (a.row_length(row) > a.row_length(longest)) longest = row;
  return a.nnz() == 0 ? -1 : a.row_ptr[longest] + (a.row_length(longest) - 1) / 2;
}

}  // namespace spmmbench
