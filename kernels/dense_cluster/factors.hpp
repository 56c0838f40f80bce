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
      {"dense_cluster", 1, {{Precision::fp16, 1}, {Precision::fp8_e4m3, 0.902}},
       {{"expected", 0.867}, {"copies", 0.12}, {"later_ctas", 1.1}, {"dense_spill", 0.44}}},
      {"dense_cluster", kAnyN, {{Precision::fp16, 1}, {Precision::fp8_e4m3, 0.971}},
       {{"launch", 0.61}, {"expected", 0.664}, {"copies", 0.267}, {"later_ctas", 2.38}, {"dense_a", 0.1},
        {"dense_spill", 0.467}}},
  };
}

inline std::vector<Preparation> preparation() {
  return {
      {"dense_cluster", {{"constant", 0.0257}, {"dense", 0.000889}}},
  };
}
// clang-format on

}  // namespace spmmbench::dense_cluster
