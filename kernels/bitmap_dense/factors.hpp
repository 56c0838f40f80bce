#pragma once
// Written by scripts/refit.
//
// Factors of a call, in microseconds of:
//   launch (launches), b (us), c (us), positions (10^6 an SM), bitmap_spill (us)
// and of preparation beyond the copy of A, in milliseconds of:
//   constant (times), nonzeros (10^6), rows (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::bitmap_dense {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"bitmap_dense", 1, {{Precision::fp16, 1}},
       {{"launch", 4.18}, {"b", 144}, {"c", 592}, {"bitmap_spill", 0.934}}},
      {"bitmap_dense", kAnyN, {{Precision::fp16, 1}},
       {{"launch", 7.05}, {"b", 9.4}, {"c", 6.18}, {"positions", 23}, {"bitmap_spill", 0.636}}},
  };
}

inline std::vector<Preparation> preparation() {
  return {
      {"bitmap_dense", {{"constant", 0.0753}, {"nonzeros", 0.0462}, {"rows", 13.7}}},
  };
}
// clang-format on

}  // namespace spmmbench::bitmap_dense
