#pragma once
// Written by scripts/refit.
//
// Factors of a call, in microseconds of:
//   launch (launches), expected (us), copies (us), dense_a (us), dense_spill (us)
// and of preparation beyond the copy of A, in milliseconds of:
//   constant (times), dense (MB)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::dense_cluster {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"dense_cluster", 1, {{Precision::fp16, 1}},
       {{"expected", 0.846}, {"copies", 0.209}, {"dense_spill", 0.421}}},
      {"dense_cluster", kAnyN, {{Precision::fp16, 1}},
       {{"launch", 0.675}, {"expected", 0.613}, {"copies", 0.351}, {"dense_a", 0.118}, {"dense_spill", 0.393}}},
  };
}

inline std::vector<Preparation> preparation() {
  return {
      {"dense_cluster", {{"constant", 0.0283}, {"dense", 0.000686}}},
  };
}
// clang-format on

}  // namespace spmmbench::dense_cluster
