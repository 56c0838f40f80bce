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
       {0.1194, 1.037, 0.2297}},
      {"jagged_slices", Precision::fp16, 2, 2147483647,
       {0.8752, 0.3543, 0.735, 0.7414, 0.006218, 0.02329, 0.4476, 0.1679, 0.4078, 0.7227, 0, 0.002413},
       {0.1296, 1.053, 0.2135}},
      {"jagged_slices", Precision::fp32, 1, 1,
       {0.3113, 0, 0.5371, 0.461, 0.007972, 0.007972, 0.4432, 0.1762, 0.3237, 1.29, 0, 0},
       {0.1, 1.055, 0.2501}},
      {"jagged_slices", Precision::fp32, 2, 2147483647,
       {0.8998, 0.4263, 0.7278, 0.2754, 0.02134, 0.01854, 0.2142, 0.2995, 0.4873, 0.2345, 0.3397, 0},
       {0.11, 1.065, 0.25}},
      {"jagged_slices", Precision::fp64, 1, 1,
       {0.4742, 0, 1.51, 0.6128, 0.009061, 0.009061, 0.4173, 0.1599, 0.08808, 1.254, 0, 0},
       {0.0863, 1.13, 0.311}},
      {"jagged_slices", Precision::fp64, 2, 2147483647,
       {0.5113, 0.8486, 1.122, 0.06704, 0.01652, 0.02136, 0.1438, 0.4009, 0.8878, 0.5672, 0.4263, 0.02585},
       {0.09205, 1.139, 0.2834}},
      {"jagged_slices", Precision::tf32, 1, 1,
       {0.3562, 0, 0.4954, 0.5288, 0.007897, 0.007897, 0.5596, 0.09104, 0.2894, 1.189, 0, 0},
       {0.1, 1.055, 0.2501}},
      {"jagged_slices", Precision::tf32, 2, 2147483647,
       {0.8894, 0.4447, 0.708, 0.2995, 0.01951, 0.01815, 0.2818, 0.2587, 0.4943, 0.2637, 0.3117, 0},
       {0.11, 1.065, 0.2499}},
      {"jagged_slices?order=search", Precision::fp16, 1, 1,
       {0.4163, 1.978, 0, 0.2923, 0.007562, 0.007562, 0.4958, 0.05895, 0.2445, 1.22, 0.02766},
       {1.82, 2.224, 0.4025, 0, 0, 0}},
      {"jagged_slices?order=search", Precision::fp16, 2, 2147483647,
       {0.8962, 0.3496, 0.7593, 0.7078, 0.006055, 0.02376, 0.4256, 0.2021, 0.418, 0.6326, 0},
       {1.828, 2.247, 0.2803, 0, 0, 0}},
      {"jagged_slices?order=search", Precision::fp32, 1, 1,
       {0.312, 0, 0.5412, 0.4674, 0.004353, 0.004353, 0.4377, 0.1815, 0.3245, 1.287, 0.1345},
       {1.8, 2.255, 0.2475, 0, 0, 0}},
      {"jagged_slices?order=search", Precision::fp32, 2, 2147483647,
       {0.9105, 0.7046, 0.7594, 0.2641, 0.02209, 0.01235, 0.2182, 0.2941, 0.4827, 0.2322, 0.2423},
       {1.81, 2.265, 0.2505, 0, 0.0004594, 0}},
      {"jagged_slices?order=search", Precision::fp64, 1, 1,
       {0.1154, 0, 0.7071, 0.4076, 0, 0, 0.3764, 0.1912, 0.2164, 1.798, 0.6253},
       {1.801, 2.213, 0, 0, 0, 0}},
      {"jagged_slices?order=search", Precision::fp64, 2, 2147483647,
       {0.7172, 1.189, 1.158, 0.1054, 0.01493, 0.01706, 0.171, 0.3402, 0.9014, 0.4806, 0.1983},
       {1.819, 2.209, 0.5384, 0, 0, 0}},
      {"jagged_slices?order=search", Precision::tf32, 1, 1,
       {0.3522, 0, 0.4948, 0.5278, 0.004906, 0.004906, 0.5596, 0.09591, 0.2934, 1.194, 0.1145},
       {1.8, 2.255, 0.2475, 0, 0, 0}},
      {"jagged_slices?order=search", Precision::tf32, 2, 2147483647,
       {0.9271, 0.6872, 0.7432, 0.2801, 0.0175, 0.0125, 0.2546, 0.2777, 0.4893, 0.1903, 0.2547},
       {1.81, 2.264, 0.2505, 0, 0.0005289, 0}},
  };
}
// clang-format on

}  // namespace spmmbench::jagged_slices
