#pragma once
// Written by scripts/refit.
//
// Microseconds of a call:
//   launch (launches), c (us), tiles (100 tiles an SM), parts (10 CTAs), depth (10 tiles),
//   longest_row (1000 nonzeros), ordered_tiles (100 tiles an SM)
// and milliseconds of preparation:
//   constant (times), nonzeros (10^6), rows (10^6), windows_of_longest (1000 nonzeros),
//   search (times), search_nonzeros (10^6), search_rows (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::rsh {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"rsh", Precision::fp16, 2, 2147483647,
       {2.381, 0.9945, 0.2658, 3.58, 1.605, 0.5383, 2.383},
       {0.465, 1.014, 0.8597, 0.03551, 0.4949, 1.016, 1.374}},
      {"rsh", Precision::tf32, 2, 2147483647,
       {2.517, 1.184, 0, 2.259, 1.479, 0.2084, 2.289},
       {0.3462, 1.976, 0.2591, 0.03446, 0.6041, 0, 2.757}},
  };
}
// clang-format on

}  // namespace spmmbench::rsh
