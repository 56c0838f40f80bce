#pragma once
// Written by scripts/refit.
//
// Factors of a call, in microseconds of:
//   launch (launches), c (us), spill (us), loads (100 loads an SM), longest_row (1000 nonzeros),
//   variation (deviations), mean_row (100 nonzeros), scattered (share), lone_loads (100 loads an
//   SM), b (us)
// and of preparation beyond the copy of A, in milliseconds of:
//   constant (times), nonzeros (10^6), rows (10^6), windows_of_longest (1000 nonzeros)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::jagged_slices {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"jagged_slices", 1, {{Precision::fp16, 1}, {Precision::fp32, 1.08}, {Precision::fp64, 1.19},
        {Precision::tf32, 1.09}},
       {{"launch", 0.603}, {"loads", 0.0196}, {"longest_row", 0.495}, {"mean_row", 0.217}, {"scattered", 0.806},
        {"lone_loads", 0.0316}, {"b", 0.108}}},
      {"jagged_slices", kAnyN, {{Precision::fp16, 1}, {Precision::fp32, 0.8}, {Precision::fp64, 0.831},
        {Precision::tf32, 0.817}},
       {{"launch", 0.792}, {"c", 0.481}, {"spill", 0.914}, {"loads", 0.036}, {"longest_row", 0.628},
        {"variation", 0.0691}, {"mean_row", 0.489}, {"scattered", 1.15}, {"b", 0.156}}},
  };
}

inline std::vector<Preparation> preparation() {
  return {
      {"jagged_slices", {{"constant", 0.0405}, {"nonzeros", 0.00657}, {"rows", 0.0308}}},
      {"jagged_slices?order=search", {{"constant", 0.242}, {"rows", 4.3}, {"windows_of_longest", 0.0131}}},
  };
}
// clang-format on

}  // namespace spmmbench::jagged_slices
