#pragma once
// Written by scripts/refit.
//
// async_wcsr: microseconds of a call:
//   launch (launches), b (us), c (us), spill (us), tiles (100 tiles an SM), parts (10 CTAs),
//   depth (10 tiles), filled_rows (100 rows an SM), variation (deviations), a_csr (us),
//   gather_window (us)
// and milliseconds of preparation:
//   constant (times), nonzeros (10^6), rows (10^6)
// async_wcsr?order=search: microseconds of a call:
//   launch (launches), b (us), c (us), spill (us), tiles (100 tiles an SM), parts (10 CTAs),
//   depth (10 tiles), filled_rows (100 rows an SM), variation (deviations),
//   longest_row (1000 nonzeros), ordered_gather (us)
// and milliseconds of preparation:
//   constant (times), nonzeros (10^6), rows (10^6), search (times), search_nonzeros (10^6),
//   search_rows (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::async_wcsr {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"async_wcsr", Precision::fp16, 1, 1,
       {1.455, 0.7804, 6.426, 0, 0.5492, 1.058, 0.5199, 0, 0.3374, 0, 0.9836},
       {0.1866, 1.384, 4.913}},
      {"async_wcsr", Precision::fp16, 2, 8,
       {1.582, 0, 0.4333, 0.2975, 1.423, 1.888, 1.163, 0.07619, 0.2911, 0.1325, 0.6424},
       {0.2642, 0.9807, 5.268}},
      {"async_wcsr", Precision::fp16, 9, 2147483647,
       {1.609, 0.3926, 0.674, 0.3873, 1.545, 2.874, 1.449, 0, 0.2325, 0.1704, 0.3479},
       {0.3052, 0.9539, 7.237}},
      {"async_wcsr", Precision::tf32, 1, 1,
       {1.295, 0.2453, 2.564, 0.4913, 1.063, 1.713, 0.9135, 0.06885, 0.3577, 0, 1.414},
       {0.2307, 2.095, 7.222}},
      {"async_wcsr", Precision::tf32, 2, 8,
       {1.936, 1.577, 0.1417, 0.07792, 2.37, 1.916, 1.102, 0.03034, 0.1363, 0.4438, 0.6628},
       {0.2152, 2.27, 6.342}},
      {"async_wcsr", Precision::tf32, 9, 2147483647,
       {1.929, 0.5707, 0.3961, 0.3196, 2.234, 3.012, 1.146, 0.09868, 0.1367, 0.2659, 0.09669},
       {0.2751, 1.798, 5.046}},
      {"async_wcsr?order=search", Precision::fp16, 1, 1,
       {1.438, 0.9424, 3.289, 0.06249, 0.4619, 1.106, 0.5928, 0, 0.3535, 0, 0.9933},
       {1.901, 2.289, 0, 0, 0, 0}},
      {"async_wcsr?order=search", Precision::fp16, 2, 8,
       {1.501, 0, 0.7616, 0.7098, 0.7035, 2.122, 1.511, 0.07425, 0.2615, 0.1276, 1.166},
       {1.91, 1.697, 0, 0.04274, 0.3691, 0.9021}},
      {"async_wcsr?order=search", Precision::fp16, 9, 2147483647,
       {1.621, 0.4588, 0.6107, 0.4337, 1.189, 3.111, 1.701, 0.03078, 0.1496, 0.21, 0.3431},
       {1.387, 1.899, 0, 0.6505, 0, 1.481}},
      {"async_wcsr?order=search", Precision::tf32, 1, 1,
       {1.354, 0.6609, 2.17, 0.6216, 0.5831, 1.733, 1.025, 0.05718, 0.2734, 0.1158, 1.531},
       {1.888, 2.361, 2.726, 0, 0.6571, 0}},
      {"async_wcsr?order=search", Precision::tf32, 2, 8,
       {1.986, 1.508, 0, 0.407, 1.117, 2.39, 1.206, 0.1397, 0.06238, 0.1085, 1.813},
       {1.973, 3.144, 0, 0, 0, 0}},
      {"async_wcsr?order=search", Precision::tf32, 9, 2147483647,
       {1.916, 0.5724, 0.2574, 0.4028, 1.206, 3.469, 1.696, 0.2371, 0, 0.315, 0.254},
       {2, 2.671, 0.5921, 0, 0, 0}},
  };
}
// clang-format on

}  // namespace spmmbench::async_wcsr
