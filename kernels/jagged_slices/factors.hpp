#pragma once
// Written by scripts/refit.
//
// jagged_slices: microseconds of a call:
//   launch (launches), c (us), spill (us), gather_distinct (us), nonzeros (100 an SM),
//   loads (100 loads an SM), longest_row (1000 nonzeros), variation (deviations),
//   mean_row (100 nonzeros), scattered (share), b (us), rows (100 rows an SM)
// and milliseconds of preparation:
//   constant (times), nonzeros (10^6), rows (10^6)
// jagged_slices?order=search: microseconds of a call:
//   launch (launches), c (us), spill (us), gather_distinct (us), nonzeros (100 an SM),
//   loads (100 loads an SM), longest_row (1000 nonzeros), variation (deviations),
//   mean_row (100 nonzeros), scattered (share), ordered_rows (us)
// and milliseconds of preparation:
//   constant (times), nonzeros (10^6), rows (10^6), search (times), search_nonzeros (10^6),
//   search_rows (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::jagged_slices {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"jagged_slices", Precision::fp16, 1, 1,
       {0.409, 0, 0, 0.2883, 0.008124, 0.008124, 0.4844, 0.06041, 0.2595, 1.212, 0.7013, 0},
       {0.12, 1.035, 0.21}},
      {"jagged_slices", Precision::fp16, 2, 2147483647,
       {0.8752, 0.3543, 0.735, 0.7414, 0.006218, 0.02329, 0.4476, 0.1679, 0.4078, 0.7227, 0, 0.002413},
       {0.13, 1.052, 0.21}},
      {"jagged_slices", Precision::fp32, 1, 1,
       {0.3113, 0, 0.5371, 0.461, 0.007972, 0.007972, 0.4432, 0.1762, 0.3237, 1.29, 0, 0},
       {0.1, 1.055, 0.25}},
      {"jagged_slices", Precision::fp32, 2, 2147483647,
       {0.9009, 0.4267, 0.7281, 0.2751, 0.02127, 0.01856, 0.2148, 0.2996, 0.4872, 0.2325, 0.3397, 0},
       {0.11, 1.065, 0.25}},
      {"jagged_slices", Precision::fp64, 1, 1,
       {0.4739, 0, 1.51, 0.6127, 0.009062, 0.009062, 0.4172, 0.16, 0.08793, 1.254, 0, 0},
       {0.11, 1.105, 0.38}},
      {"jagged_slices", Precision::fp64, 2, 2147483647,
       {0.5112, 0.849, 1.122, 0.06716, 0.01652, 0.02136, 0.1437, 0.4007, 0.8891, 0.5683, 0.426, 0.02585},
       {0.12, 1.125, 0.37}},
      {"jagged_slices", Precision::tf32, 1, 1,
       {0.3562, 0, 0.4954, 0.5288, 0.007897, 0.007897, 0.5596, 0.09104, 0.2894, 1.189, 0, 0},
       {0.1, 1.055, 0.25}},
      {"jagged_slices", Precision::tf32, 2, 2147483647,
       {0.8894, 0.4447, 0.708, 0.2995, 0.01951, 0.01815, 0.2818, 0.2587, 0.4943, 0.2637, 0.3117, 0},
       {0.11, 1.065, 0.25}},
      {"jagged_slices?order=search", Precision::fp16, 1, 1,
       {0.4163, 1.978, 0, 0.2923, 0.007562, 0.007562, 0.4958, 0.05895, 0.2445, 1.22, 0.02766},
       {1.82, 2.235, 0.21, 0, 0, 0}},
      {"jagged_slices?order=search", Precision::fp16, 2, 2147483647,
       {0.8962, 0.3496, 0.7593, 0.7078, 0.006055, 0.02376, 0.4256, 0.2021, 0.418, 0.6326, 0},
       {1.83, 2.252, 0.21, 0, 0, 0}},
      {"jagged_slices?order=search", Precision::fp32, 1, 1,
       {0.312, 0, 0.5412, 0.4674, 0.004353, 0.004353, 0.4377, 0.1815, 0.3245, 1.287, 0.1345},
       {1.8, 2.255, 0.25, 0, 0, 0}},
      {"jagged_slices?order=search", Precision::fp32, 2, 2147483647,
       {0.9115, 0.7048, 0.7596, 0.2639, 0.02202, 0.01234, 0.2188, 0.2942, 0.4825, 0.2304, 0.2431},
       {1.81, 2.265, 0.25, 0, 0, 0}},
      {"jagged_slices?order=search", Precision::fp64, 1, 1,
       {0.1149, 0, 0.7081, 0.4079, 0, 0, 0.3762, 0.1915, 0.2163, 1.798, 0.6253},
       {1.81, 2.305, 0.38, 0, 0, 0}},
      {"jagged_slices?order=search", Precision::fp64, 2, 2147483647,
       {0.7178, 1.188, 1.158, 0.1053, 0.01493, 0.01706, 0.1713, 0.3402, 0.9002, 0.4802, 0.1982},
       {1.82, 2.325, 0.37, 0, 0, 0}},
      {"jagged_slices?order=search", Precision::tf32, 1, 1,
       {0.3522, 0, 0.4948, 0.5278, 0.004905, 0.004905, 0.5596, 0.09591, 0.2934, 1.194, 0.1145},
       {1.8, 2.255, 0.25, 0, 0, 0}},
      {"jagged_slices?order=search", Precision::tf32, 2, 2147483647,
       {0.9271, 0.6872, 0.7432, 0.2801, 0.0175, 0.0125, 0.2546, 0.2777, 0.4893, 0.1903, 0.2547},
       {1.81, 2.265, 0.25, 0, 0, 0}},
  };
}
// clang-format on

}  // namespace spmmbench::jagged_slices
