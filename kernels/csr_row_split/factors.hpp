#pragma once
// Written by scripts/refit.
//
// Microseconds of a call:
//   launch (launches), b (us), c (us), spill (us), gather_distinct (us), nonzeros (100 an SM),
//   longest_row (1000 nonzeros), variation (deviations), uneven_rows (us), mean_row (100 nonzeros),
//   cut_row (1000 nonzeros)
// and milliseconds of preparation:
//   constant (times), nonzeros (10^6), rows (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::csr_row_split {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"csr_row_split", Precision::fp16, 2, 2147483647,
       {2.224, 0.4906, 0.4835, 0.5758, 0.4741, 0.1109, 0.4449, 0.597, 0.08452, 1.921, 0.2},
       {0.0873, 0.971, 0.418}},
      {"csr_row_split", Precision::fp32, 2, 2147483647,
       {1.865, 0.3073, 0.5022, 0.6274, 0.4874, 0.1089, 0.4187, 0.4777, 0.0275, 1.409, 0.1184},
       {0.06661, 0.6512, 0.7064}},
      {"csr_row_split", Precision::fp64, 2, 2147483647,
       {0.9851, 0, 2.024, 0.3889, 0.2813, 0.1331, 1.275, 0.1439, 0.04652, 1.751, 0.2},
       {0.0525, 1.104, 0.3105}},
      {"csr_row_split", Precision::tf32, 2, 2147483647,
       {2.127, 0.2984, 0.5745, 0.6573, 0.4439, 0.0971, 0.6539, 0.3227, 0.05172, 1.206, 0.2},
       {0.07522, 0.92, 1.092}},
  };
}
// clang-format on

}  // namespace spmmbench::csr_row_split
