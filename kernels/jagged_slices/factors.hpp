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
       {0.4069, 0, 0, 0.2876, 0.008135, 0.008135, 0.4866, 0.05994, 0.2595, 1.216, 0.7062, 0},
       {0.1125, 2.463, 16.27}},
      {"jagged_slices", Precision::fp16, 2, 2147483647,
       {0.876, 0.3505, 0.7352, 0.7397, 0.006157, 0.02338, 0.4475, 0.1682, 0.4072, 0.7225, 0, 0.003037},
       {0.2748, 1.68, 13.61}},
      {"jagged_slices", Precision::fp32, 1, 1,
       {0.3113, 0, 0.5372, 0.461, 0.007972, 0.007972, 0.4433, 0.1761, 0.3237, 1.29, 0, 0},
       {0.1022, 2.362, 21.26}},
      {"jagged_slices", Precision::fp32, 2, 2147483647,
       {0.9009, 0.4267, 0.7281, 0.2751, 0.02127, 0.01856, 0.2148, 0.2996, 0.4872, 0.2325, 0.3398, 0},
       {0.2482, 2.72, 18.92}},
      {"jagged_slices", Precision::tf32, 1, 1,
       {0.3562, 0, 0.4955, 0.5287, 0.007897, 0.007897, 0.5596, 0.09101, 0.2894, 1.189, 0, 0},
       {0.08973, 2.344, 25.64}},
      {"jagged_slices", Precision::tf32, 2, 2147483647,
       {0.8894, 0.4447, 0.708, 0.2995, 0.01951, 0.01815, 0.2817, 0.2587, 0.4944, 0.2637, 0.3117, 0},
       {0.1718, 2.434, 19.37}},
      {"jagged_slices?order=search", Precision::fp16, 1, 1,
       {0.4138, 2.015, 0, 0.2914, 0.007625, 0.007625, 0.4979, 0.05854, 0.245, 1.224, 0.0254},
       {0, 0, 1440, 0, 0, 0}},
      {"jagged_slices?order=search", Precision::fp16, 2, 2147483647,
       {0.897, 0.3481, 0.7592, 0.7063, 0.006028, 0.02382, 0.4255, 0.2023, 0.4173, 0.6324, 0},
       {0, 44.92, 66.72, 1.494, 11.04, 0}},
      {"jagged_slices?order=search", Precision::fp32, 1, 1,
       {0.312, 0, 0.5412, 0.4673, 0.004352, 0.004352, 0.4378, 0.1814, 0.3245, 1.287, 0.1346},
       {0, 136.4, 841.3, 0, 0, 0}},
      {"jagged_slices?order=search", Precision::fp32, 2, 2147483647,
       {0.9115, 0.7049, 0.7596, 0.2639, 0.02202, 0.01234, 0.2188, 0.2942, 0.4825, 0.2303, 0.2431},
       {0, 85.63, 0, 1.124, 5.438, 0}},
      {"jagged_slices?order=search", Precision::tf32, 1, 1,
       {0.3522, 0, 0.4949, 0.5278, 0.004904, 0.004904, 0.5596, 0.09588, 0.2934, 1.194, 0.1146},
       {0, 0, 915.4, 0, 0, 0}},
      {"jagged_slices?order=search", Precision::tf32, 2, 2147483647,
       {0.927, 0.6873, 0.7433, 0.2801, 0.0175, 0.01249, 0.2547, 0.2777, 0.4893, 0.1903, 0.2548},
       {0.2867, 82.92, 0, 0, 0, 0}},
  };
}
// clang-format on

}  // namespace spmmbench::jagged_slices
