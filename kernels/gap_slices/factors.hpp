#pragma once
// Written by scripts/refit.
//
// Factors of a call, in microseconds of:
//   launch (launches), gaps (us)
// and of preparation beyond the copy of A, in milliseconds of:
//   constant (times), nonzeros (10^6), rows (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::gap_slices {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"gap_slices", kAnyN, {{Precision::fp16, 1}, {Precision::fp8_e4m3, 1.08}},
       {{"launch", 2.07}, {"gaps", 1.03}}},
  };
}

inline std::vector<Preparation> preparation() {
  return {
      {"gap_slices", {{"constant", 0.175}, {"nonzeros", 1.26}, {"rows", 42.6}}},
  };
}
// clang-format on

}  // namespace spmmbench::gap_slices
