#pragma once
// Written by scripts/refit.
//
// Factors of a call, in microseconds of:
//   launch (launches), b (us), c (us), spill (us), gather_distinct (us), nonzeros (100 an SM),
//   longest_row (1000 nonzeros), variation (deviations), uneven_rows (us), mean_row (100 nonzeros)
// and of preparation beyond the copy of A, in milliseconds of:
//   constant (times), nonzeros (10^6), rows (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::csr_row_split {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"csr_row_split", kAnyN, {{Precision::fp16, 1}, {Precision::fp8_e4m3, 1.23}},
       {{"launch", 2.16}, {"c", 0.676}, {"spill", 0.597}, {"gather_distinct", 0.485}, {"nonzeros", 0.113},
        {"variation", 0.828}, {"uneven_rows", 0.0975}, {"mean_row", 2.07}}},
      {"csr_row_split", kAnyN, {{Precision::fp32, 1}, {Precision::fp64, 1.12}, {Precision::tf32, 0.987}},
       {{"launch", 2.26}, {"b", 0.325}, {"c", 0.573}, {"spill", 0.626}, {"gather_distinct", 0.453},
        {"nonzeros", 0.104}, {"longest_row", 0.925}, {"uneven_rows", 0.048}, {"mean_row", 1.16}}},
  };
}

inline std::vector<Preparation> preparation() {
  return {
      {"csr_row_split", {{"constant", 0.0126}, {"nonzeros", 0.00332}, {"rows", 0.00999}}},
  };
}
// clang-format on

}  // namespace spmmbench::csr_row_split
