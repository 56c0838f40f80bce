#pragma once
// Written by scripts/refit.
//
// Microseconds of a call:
//   launch (launches), b (us), c (us), slots (100,000 an SM), slot_groups (100,000 an SM)
// and milliseconds of preparation:
//   constant (times), nonzeros (10^6), rows (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::gather_mma {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"gather_mma", Precision::fp16, 1, 1,
       {3.809, 10.29, 29.3, 5.684, 5.684},
       {0.2639, 1.491, 0}},
      {"gather_mma", Precision::fp16, 2, 2147483647,
       {4.118, 24.29, 20.02, 3.518, 7.384},
       {0.2842, 1.428, 0.4126}},
  };
}
// clang-format on

}  // namespace spmmbench::gather_mma
