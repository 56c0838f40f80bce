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
       {4.482, 108, 420, 8.81, 0.794},
       {0.1351, 1.221, 3.648}},
      {"bitmap_dense", Precision::fp16, 2, 2147483647,
       {7.053, 9.406, 6.185, 22.97, 0.6368},
       {0.1425, 1.004, 11.15}},
  };
}
// clang-format on

}  // namespace spmmbench::bitmap_dense
