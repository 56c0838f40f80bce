#pragma once
// Written by scripts/refit.
//
// Microseconds of a call:
//   launch (launches), gaps (us)
// and milliseconds of preparation:
//   constant (times), nonzeros (10^6), rows (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::gap_slices {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"gap_slices", Precision::fp16, 1, 1,
       {2.166, 1.071},
       {0.3953, 2.573, 4.921}},
  };
}
// clang-format on

}  // namespace spmmbench::gap_slices
