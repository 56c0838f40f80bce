#pragma once
// Written by scripts/refit.
//
// Microseconds of a call:
//   launch (launches), gather_rows (us), longest_row (1000 nonzeros), variation (deviations)
// and milliseconds of preparation:
//   constant (times), nonzeros (10^6), rows (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::cusparse_sell {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"cusparse_spmv_sell", Precision::fp16, 1, 1,
       {1.166, 0.6322, 57.17, 2.985},
       {0.06611, 4.952, 2.948}},
      {"cusparse_spmv_sell", Precision::fp32, 1, 1,
       {1.684, 0.7161, 83.95, 0},
       {0, 5.499, 0}},
      {"cusparse_spmv_sell", Precision::tf32, 1, 1,
       {1.516, 0.741, 83.46, 0},
       {0, 5.083, 0.5999}},
  };
}
// clang-format on

}  // namespace spmmbench::cusparse_sell
