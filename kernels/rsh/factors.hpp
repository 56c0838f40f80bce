#pragma once
// Written by scripts/refit.
//
// Microseconds of a call:
//   launch (launches), c (us), tiles (100 tiles an SM), parts (10 CTAs), depth (10 tiles),
//   longest_row (1000 nonzeros), ordered_tiles (100 tiles an SM)
// and milliseconds of preparation:
//   constant (times), nonzeros (10^6), rows (10^6), search (times), search_nonzeros (10^6),
//   search_rows (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::rsh {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"rsh", Precision::fp16, 2, 2147483647,
       {2.383, 0.9946, 0.2373, 3.56, 1.593, 0.5373, 2.411},
       {0.9993, 5.787, 7.15, 2.052, 0.757, 3.821}},
      {"rsh", Precision::tf32, 2, 2147483647,
       {2.517, 1.184, 0, 2.259, 1.478, 0.2084, 2.289},
       {0.159, 7.723, 8.556, 3.046, 0, 0}},
  };
}
// clang-format on

}  // namespace spmmbench::rsh
