#pragma once
// Written by scripts/refit.
//
// Microseconds of a call:
//   launch (launches), b (us), dense_flops (us), packed (us)
// and milliseconds of preparation:
//   constant (times), nonzeros (10^6), rows (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::two_four {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"two_four", Precision::fp16, 1, 1,
       {3.174, 38.25, 20.27, 0.7738},
       {0.002413, 1.853, 0}},
      {"two_four", Precision::fp16, 2, 2147483647,
       {5.15, 3.706, 0.4848, 0.9073},
       {0.249, 1.724, 0}},
  };
}
// clang-format on

}  // namespace spmmbench::two_four
