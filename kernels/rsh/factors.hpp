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
       {2.457, 1.001, 0.2238, 4.913, 1.528, 0.4671, 2.42},
       {0.2805, 1.2, 0.4126, 0.02634, 0.3923, 1.164, 3.226}},
      {"rsh", Precision::tf32, 2, 2147483647,
       {2.517, 1.184, 0, 2.259, 1.479, 0.2084, 2.289},
       {0.1933, 0, 4.23, 0.02531, 0.4403, 2.324, 0.4496}},
  };
}
// clang-format on

}  // namespace spmmbench::rsh
