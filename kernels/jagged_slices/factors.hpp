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
//   constant (times), nonzeros (10^6), rows (10^6), windows_of_longest (1000 nonzeros),
//   search (times), search_nonzeros (10^6), search_rows (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::jagged_slices {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"jagged_slices", Precision::fp16, 1, 1,
       {0.409, 0, 0, 0.2883, 0.008124, 0.008124, 0.4844, 0.06041, 0.2595, 1.212, 0.7012, 0},
       {0.124, 0.9776, 0.4323}},
      {"jagged_slices", Precision::fp16, 2, 2147483647,
       {0.8791, 0.3483, 0.7338, 0.7409, 0.006165, 0.0233, 0.4477, 0.1674, 0.407, 0.7196, 0, 0.00461},
       {0.124, 0.9777, 0.4317}},
      {"jagged_slices", Precision::fp32, 1, 1,
       {0.3113, 0, 0.5372, 0.461, 0.007972, 0.007972, 0.4432, 0.1762, 0.3237, 1.29, 0, 0},
       {0.09015, 1.123, 1.168}},
      {"jagged_slices", Precision::fp32, 2, 2147483647,
       {0.9248, 0.4685, 0.7023, 0.2516, 0.02069, 0.01903, 0.1695, 0.3151, 0.4829, 0.2041, 0.3447, 0},
       {0.1007, 1.038, 1.033}},
      {"jagged_slices", Precision::fp64, 1, 1,
       {0.4742, 0, 1.508, 0.6127, 0.009062, 0.009062, 0.4173, 0.1599, 0.08803, 1.255, 0, 0},
       {0.08375, 1.106, 0.3331}},
      {"jagged_slices", Precision::fp64, 2, 2147483647,
       {0.5113, 0.8478, 1.12, 0.06702, 0.01652, 0.02136, 0.1438, 0.4009, 0.8877, 0.5673, 0.426, 0.02585},
       {0.08375, 1.106, 0.3331}},
      {"jagged_slices", Precision::tf32, 1, 1,
       {0.3562, 0, 0.4954, 0.5288, 0.007897, 0.007897, 0.5595, 0.09104, 0.2894, 1.189, 0, 0},
       {0.09126, 1.103, 1.18}},
      {"jagged_slices", Precision::tf32, 2, 2147483647,
       {0.8894, 0.4447, 0.7079, 0.2995, 0.0195, 0.01815, 0.2818, 0.2587, 0.4943, 0.2636, 0.3117, 0},
       {0.1063, 1.045, 1.197}},
      {"jagged_slices?order=search", Precision::fp16, 1, 1,
       {0.4163, 1.978, 0, 0.2923, 0.00756, 0.00756, 0.4958, 0.05895, 0.2445, 1.22, 0.0277},
       {0.3206, 0.97, 4.739, 0.008418, 0, 0, 0}},
      {"jagged_slices?order=search", Precision::fp16, 2, 2147483647,
       {0.9003, 0.3523, 0.7576, 0.7072, 0.006072, 0.02372, 0.4257, 0.2007, 0.4167, 0.6306, 0},
       {0.3169, 0.9698, 4.789, 0.004307, 0.1174, 0, 0.9044}},
      {"jagged_slices?order=search", Precision::fp32, 1, 1,
       {0.312, 0, 0.5412, 0.4674, 0.004352, 0.004352, 0.4377, 0.1815, 0.3245, 1.287, 0.1345},
       {0.3177, 0, 16.71, 0.05, 0, 0, 0}},
      {"jagged_slices?order=search", Precision::fp32, 2, 2147483647,
       {0.9383, 0.7443, 0.7349, 0.2434, 0.02065, 0.01494, 0.179, 0.307, 0.4745, 0.2066, 0.1681},
       {0.3065, 0.5433, 5.181, 0.07112, 0, 0.09772, 1.189}},
      {"jagged_slices?order=search", Precision::fp64, 1, 1,
       {0.1153, 0, 0.7062, 0.4075, 0, 0, 0.3764, 0.1912, 0.2163, 1.798, 0.6254},
       {0.2804, 1.098, 4.636, 0.008459, 0, 0, 0}},
      {"jagged_slices?order=search", Precision::fp64, 2, 2147483647,
       {0.7172, 1.188, 1.157, 0.1054, 0.01493, 0.01706, 0.171, 0.3402, 0.9014, 0.4807, 0.1983},
       {0.2804, 1.098, 4.636, 0.008394, 0, 0, 0}},
      {"jagged_slices?order=search", Precision::tf32, 1, 1,
       {0.3522, 0, 0.4948, 0.5278, 0.004905, 0.004905, 0.5596, 0.09591, 0.2934, 1.194, 0.1145},
       {0.3134, 0.5242, 9.258, 0, 0, 0, 0}},
      {"jagged_slices?order=search", Precision::tf32, 2, 2147483647,
       {0.9271, 0.6872, 0.7431, 0.2801, 0.01749, 0.01249, 0.2547, 0.2777, 0.4893, 0.1902, 0.2548},
       {0.2968, 0.4793, 6.4, 0.01083, 0.02556, 0, 0}},
  };
}
// clang-format on

}  // namespace spmmbench::jagged_slices
