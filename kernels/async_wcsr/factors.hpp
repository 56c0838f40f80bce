#pragma once
// Written by scripts/refit.
//
// async_wcsr: microseconds of a call:
//   launch (launches), b (us), c (us), spill (us), tiles (100 tiles an SM), parts (10 CTAs),
//   depth (10 tiles), filled_rows (100 rows an SM), variation (deviations), a_csr (us),
//   gather_window (us), cut_row (1000 nonzeros)
// and milliseconds of preparation:
//   constant (times), nonzeros (10^6), rows (10^6), windows_of_longest (1000 nonzeros),
//   narrow_rows (times)
// async_wcsr?order=search: microseconds of a call:
//   launch (launches), b (us), c (us), spill (us), tiles (100 tiles an SM), parts (10 CTAs),
//   depth (10 tiles), filled_rows (100 rows an SM), variation (deviations),
//   longest_row (1000 nonzeros), ordered_gather (us)
// and milliseconds of preparation:
//   constant (times), nonzeros (10^6), rows (10^6), windows_of_longest (1000 nonzeros),
//   search (times), search_nonzeros (10^6), search_rows (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::async_wcsr {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"async_wcsr", Precision::fp16, 1, 1,
       {1.455, 0.7797, 6.42, 0, 0.5493, 1.058, 0.5199, 0, 0.3374, 0, 0.9835, 0},
       {0.1041, 0.9933, 0.6356, 0.0259, 0}},
      {"async_wcsr", Precision::fp16, 2, 8,
       {1.599, 0, 0.3684, 0.3021, 1.433, 1.868, 1.14, 0.0843, 0.2903, 0.1313, 0.6315, 0.036},
       {0.1458, 0.996, 0.475, 0.0738, 0}},
      {"async_wcsr", Precision::fp16, 9, 2147483647,
       {1.61, 0.391, 0.6752, 0.3867, 1.544, 2.872, 1.449, 0, 0.2322, 0.1698, 0.3483, 0.045},
       {0.1123, 0.9903, 0.565, 0.0555, 0.054}},
      {"async_wcsr", Precision::fp32, 9, 2147483647,
       {2.687, 0.6869, 0.3, 0.133, 1.911, 0, 0, 0.05529, 0.3831, 1.516, 0.4414, 0.03402},
       {0.08321, 0.6512, 0.7064, 0.06674, 0}},
      {"async_wcsr", Precision::tf32, 1, 1,
       {1.295, 0.2455, 2.564, 0.4913, 1.063, 1.713, 0.9135, 0.06881, 0.3577, 0, 1.413, 0},
       {0.08044, 1.104, 1.458, 0.02557, 0}},
      {"async_wcsr", Precision::tf32, 2, 8,
       {1.936, 1.578, 0.1439, 0.07773, 2.369, 1.916, 1.102, 0.02999, 0.1364, 0.4442, 0.6625, 0},
       {0.09322, 0.8994, 1.562, 0.02771, 0}},
      {"async_wcsr", Precision::tf32, 9, 2147483647,
       {1.929, 0.5707, 0.3962, 0.3194, 2.234, 3.012, 1.146, 0.0986, 0.1367, 0.2661, 0.09683, 0},
       {0.09536, 0.9319, 1.458, 0.02593, 0}},
      {"async_wcsr?order=search", Precision::fp16, 1, 1,
       {1.438, 0.9415, 3.286, 0.06243, 0.462, 1.106, 0.5928, 0, 0.3535, 0, 0.9932},
       {0.349, 1.695, 3.562, 0.002, 0, 0, 0}},
      {"async_wcsr?order=search", Precision::fp16, 2, 8,
       {1.511, 0, 0.7422, 0.7127, 0.7064, 2.106, 1.501, 0.07658, 0.2602, 0.1289, 1.162},
       {0.3537, 1.688, 3.573, 0, 0, 0, 0}},
      {"async_wcsr?order=search", Precision::fp16, 9, 2147483647,
       {1.622, 0.4553, 0.6136, 0.4335, 1.191, 3.106, 1.704, 0.02954, 0.1496, 0.2099, 0.3427},
       {0.365, 1.656, 3.712, 0.03468, 0, 0, 0}},
      {"async_wcsr?order=search", Precision::fp32, 9, 2147483647,
       {3.397, 0.635, 0.2059, 0.2152, 1.17, 21.76, 0, 0.2351, 0, 0.7893, 0.4532},
       {0.04356, 0.6512, 1.21, 0.06773, 0.3489, 0.269, 5.327}},
      {"async_wcsr?order=search", Precision::tf32, 1, 1,
       {1.354, 0.6609, 2.17, 0.6216, 0.5833, 1.733, 1.025, 0.05717, 0.2734, 0.1158, 1.531},
       {0.3467, 1.81, 2.428, 0.001398, 0, 0, 0}},
      {"async_wcsr?order=search", Precision::tf32, 2, 8,
       {1.986, 1.509, 0, 0.4069, 1.117, 2.39, 1.206, 0.1395, 0.06234, 0.1084, 1.813},
       {0.3408, 1.703, 2.302, 0.01087, 0, 0, 0}},
      {"async_wcsr?order=search", Precision::tf32, 9, 2147483647,
       {1.916, 0.5723, 0.2573, 0.4026, 1.206, 3.469, 1.696, 0.2371, 0, 0.315, 0.2541},
       {0.3494, 1.642, 2.642, 0.01055, 0.009927, 0, 0}},
  };
}
// clang-format on

}  // namespace spmmbench::async_wcsr
