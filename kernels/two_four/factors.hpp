#pragma once
// Written by scripts/refit.
//
// Factors of a call, in microseconds of:
//   launch (launches), b (us), c (us), padded_flops (us), packed (us)
// and of preparation, in milliseconds of:
//   kept (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::two_four {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"two_four", 16, {{Precision::fp16, 1}},
       {{"launch", 3.4}, {"b", 20.7}, {"packed", 0.966}}},
      {"two_four", kAnyN, {{Precision::fp16, 1}},
       {{"launch", 11.6}, {"c", 1}, {"padded_flops", 0.525}, {"packed", 0.674}}},
  };
}

inline std::vector<Preparation> preparation() {
  return {
      {"two_four", {{"kept", 1.79}}},
  };
}
// clang-format on

}  // namespace spmmbench::two_four
