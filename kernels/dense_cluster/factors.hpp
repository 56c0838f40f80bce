#pragma once
// Written by scripts/refit.
//
// Factors of a call, in microseconds of:
//   launch (launches), expected (us), copies (us), later_ctas (an SM), dense_a (us), dense_spill
//   (us)
// and of preparation beyond the copy of A, in milliseconds of:
//   constant (times), dense (MB)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::dense_cluster {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"dense_cluster", 1, {{Precision::fp16, 1}, {Precision::fp8_e4m3, 0.907}},
       {{"expected", 0.865}, {"copies", 0.129}, {"dense_spill", 0.471}}},
      {"dense_cluster", kAnyN, {{Precision::fp16, 1}, {Precision::fp8_e4m3, 0.958}},
       {{"launch", 0.259}, {"expected", 0.869}, {"dense_a", 0.0659}, {"dense_spill", 0.606}}},
  };
}

inline std::vector<Preparation> preparation() {
  return {
      {"dense_cluster", {{"constant", 0.0257}, {"dense", 0.000889}}},
  };
}
// clang-format on

}  // namespace spmmbench::dense_cluster
