#pragma once
// Written by scripts/refit.
//
// Microseconds of a call:
//   launch (launches), b (us), c (us), positions (10^6 an SM), bitmap_spill (us)
// and milliseconds of preparation:
//   constant (times), nonzeros (10^6), rows (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::bitmap_dense {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"bitmap_dense", Precision::fp16, 1, 1,
       {4.484, 107.9, 419.4, 8.849, 0.7938},
       {0.03614, 2.28, 264.6}},
      {"bitmap_dense", Precision::fp16, 2, 2147483647,
       {7.05, 9.398, 6.169, 22.96, 0.6384},
       {0.2135, 2.067, 244.6}},
  };
}
// clang-format on

}  // namespace spmmbench::bitmap_dense
