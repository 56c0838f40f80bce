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
       {{"expected", 0.86}, {"copies", 0.153}, {"dense_spill", 0.461}}},
      {"dense_cluster", kAnyN, {{Precision::fp16, 1}},
       {{"launch", 0.589}, {"expected", 0.671}, {"copies", 0.268}, {"dense_a", 0.0981}, {"dense_spill", 0.491}}},
  };
}

inline std::vector<Preparation> preparation() {
  return {
      {"dense_cluster", {{"constant", 0.0264}, {"dense", 0.000871}}},
  };
}
// clang-format on

}  // namespace spmmbench::dense_cluster
