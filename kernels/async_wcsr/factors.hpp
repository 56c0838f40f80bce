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
       {1.464, 0.7786, 6.412, 0, 0.5377, 1.05, 0.5081, 0, 0.3406, 0, 1.004},
       {0.1887, 1.349, 5.37}},
      {"async_wcsr", Precision::fp16, 2, 8,
       {1.585, 0, 0.466, 0.3036, 1.437, 1.886, 1.159, 0.07102, 0.2879, 0.1311, 0.6257},
       {0.2648, 0.9657, 5.989}},
      {"async_wcsr", Precision::fp16, 9, 2147483647,
       {1.609, 0.3916, 0.6743, 0.3877, 1.545, 2.874, 1.448, 0, 0.2326, 0.1702, 0.3479},
       {0.3061, 0.946, 7.681}},
      {"async_wcsr", Precision::tf32, 1, 1,
       {1.295, 0.2458, 2.562, 0.4914, 1.064, 1.714, 0.9135, 0.06875, 0.3577, 0, 1.413},
       {0.2307, 2.095, 7.222}},
      {"async_wcsr", Precision::tf32, 2, 8,
       {1.936, 1.577, 0.1427, 0.07793, 2.37, 1.916, 1.102, 0.03015, 0.1363, 0.4441, 0.6618},
       {0.2152, 2.27, 6.342}},
      {"async_wcsr", Precision::tf32, 9, 2147483647,
       {1.929, 0.5708, 0.3962, 0.3195, 2.234, 3.012, 1.146, 0.09854, 0.1367, 0.266, 0.09657},
       {0.2751, 1.798, 5.046}},
      {"async_wcsr?order=search", Precision::fp16, 1, 1,
       {1.449, 0.9658, 3.527, 0.06325, 0.4721, 1.101, 0.5849, 0, 0.3555, 0, 0.9704},
       {0.6006, 68.4, 0, 0, 0, 0}},
      {"async_wcsr?order=search", Precision::fp16, 2, 8,
       {1.498, 0, 0.817, 0.7043, 0.7155, 2.132, 1.516, 0.06741, 0.2621, 0.1159, 1.155},
       {0.9773, 42.49, 0, 0, 18.09, 0}},
      {"async_wcsr?order=search", Precision::fp16, 9, 2147483647,
       {1.62, 0.4588, 0.6124, 0.4322, 1.19, 3.115, 1.702, 0.03001, 0.1521, 0.2057, 0.3424},
       {0, 37.22, 14.9, 1.183, 18.25, 0}},
      {"async_wcsr?order=search", Precision::tf32, 1, 1,
       {1.354, 0.6603, 2.173, 0.6217, 0.5832, 1.733, 1.025, 0.05716, 0.2734, 0.1158, 1.531},
       {1.282, 4.04, 0, 0, 78.36, 0}},
      {"async_wcsr?order=search", Precision::tf32, 2, 8,
       {1.986, 1.509, 0, 0.407, 1.117, 2.39, 1.206, 0.1396, 0.0623, 0.1085, 1.813},
       {0.7466, 56.66, 0, 0, 0, 0}},
      {"async_wcsr?order=search", Precision::tf32, 9, 2147483647,
       {1.916, 0.5724, 0.2574, 0.4028, 1.206, 3.469, 1.696, 0.2371, 0, 0.315, 0.254},
       {1.081, 63.27, 20.92, 0, 0, 0}},
  };
}
// clang-format on

}  // namespace spmmbench::async_wcsr
