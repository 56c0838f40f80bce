#pragma once
// Written by scripts/refit.
//
// Microseconds of a call:
//   launch (launches), spill (us), nonzeros (100 an SM), longest_row (1000 nonzeros)
// and milliseconds of preparation:
//   constant (times), nonzeros (10^6), rows (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::cusparse_coo {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"cusparse_coo_alg1", Precision::fp16, 1, 1,
       {4.147, 0.816, 0.02891, 0.1632},
       {0.07447, 2.381, 17.99}},
      {"cusparse_coo_alg1", Precision::fp16, 2, 2147483647,
       {7.613, 17.92, 0.8484, 4.004},
       {0.08959, 2.35, 17.92}},
      {"cusparse_coo_alg2", Precision::fp16, 1, 1,
       {6.345, 0.6746, 0.0413, 0.08761},
       {0.07714, 2.552, 7.132}},
      {"cusparse_coo_alg2", Precision::fp16, 2, 2147483647,
       {14.34, 25.8, 1.563, 4.544},
       {0.1235, 2.742, 7.686}},
      {"cusparse_coo_alg3", Precision::fp16, 1, 1,
       {4.244, 0.8334, 0.02832, 0.1167},
       {0.07443, 2.539, 8.185}},
      {"cusparse_coo_alg3", Precision::fp16, 2, 2147483647,
       {28.95, 34.34, 0.5096, 4.738},
       {0.08684, 2.521, 8.133}},
      {"cusparse_coo_alg4", Precision::fp16, 1, 1,
       {4.178, 0.8192, 0.02866, 0.1457},
       {0.07336, 2.427, 10.03}},
      {"cusparse_coo_alg4", Precision::fp16, 2, 2147483647,
       {5.987, 1.607, 0.6222, 0.6021},
       {0.08909, 2.403, 10.01}},
      {"cusparse_spmv_coo_alg1", Precision::fp16, 1, 1,
       {4.227, 0.8328, 0.02834, 0.1227},
       {0.08653, 2.591, 5.434}},
      {"cusparse_spmv_coo_alg1", Precision::fp32, 1, 1,
       {3.372, 0.3584, 0.04677, 0.1642},
       {0.0234, 2.507, 6.31}},
      {"cusparse_spmv_coo_alg1", Precision::tf32, 1, 1,
       {3.363, 0.3187, 0.048, 0.1891},
       {0.02264, 2.334, 8.057}},
      {"cusparse_spmv_coo_alg2", Precision::fp16, 1, 1,
       {6.372, 0.6799, 0.0411, 0.08123},
       {0.08636, 2.316, 6.564}},
      {"cusparse_spmv_coo_alg2", Precision::fp32, 1, 1,
       {5.709, 0, 0.06521, 0.1608},
       {0.02106, 2.453, 7.452}},
      {"cusparse_spmv_coo_alg2", Precision::tf32, 1, 1,
       {5.636, 0, 0.06479, 0.1306},
       {0.02322, 2.293, 8.121}},
  };
}
// clang-format on

}  // namespace spmmbench::cusparse_coo
