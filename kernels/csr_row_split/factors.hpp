#pragma once
// Written by scripts/refit.
//
// Microseconds of a call:
//   launch (launches), b (us), c (us), spill (us), gather_distinct (us), nonzeros (100 an SM),
//   longest_row (1000 nonzeros), variation (deviations), uneven_rows (us), mean_row (100 nonzeros)
// and milliseconds of preparation:
//   constant (times), nonzeros (10^6), rows (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::csr_row_split {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"csr_row_split", Precision::fp16, 2, 2147483647,
       {2.229, 0.4913, 0.4858, 0.5767, 0.4742, 0.1106, 0.4423, 0.597, 0.08528, 1.934},
       {0.1256, 1.016, 12.86}},
      {"csr_row_split", Precision::fp32, 2, 2147483647,
       {1.845, 0.3673, 0.3952, 0.6017, 0.5002, 0.108, 0.681, 0.4123, 0.02707, 1.363},
       {0.08417, 1.154, 15.98}},
      {"csr_row_split", Precision::fp64, 2, 2147483647,
       {0.9851, 0, 2.026, 0.3892, 0.2813, 0.1331, 1.275, 0.1439, 0.04652, 1.751},
       {0.1254, 1.26, 9.596}},
      {"csr_row_split", Precision::tf32, 2, 2147483647,
       {2.127, 0.2985, 0.5744, 0.6576, 0.4439, 0.0971, 0.6538, 0.3228, 0.05173, 1.206},
       {0.0768, 1.177, 14.87}},
  };
}
// clang-format on

}  // namespace spmmbench::csr_row_split
