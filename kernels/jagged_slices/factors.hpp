#pragma once
// Written by scripts/refit.
//
// Factors of a call, in microseconds of:
//   launch (launches), c (us), spill (us), loads (100 loads an SM), longest_row (1000 nonzeros),
//   variation (deviations), mean_row (100 nonzeros), scattered (share), lone_loads (100 loads an
//   SM), b (us)
// and of preparation beyond the copy of A, in milliseconds of:
//   constant (times), rows (10^6), windows_of_longest (1000 nonzeros)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::jagged_slices {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"jagged_slices", 1, {{Precision::fp16, 1}, {Precision::fp32, 1.08}, {Precision::fp64, 1.18},
        {Precision::tf32, 1.08}},
       {{"launch", 0.567}, {"loads", 0.0198}, {"longest_row", 0.347}, {"variation", 0.168}, {"mean_row", 0.261},
        {"scattered", 0.709}, {"lone_loads", 0.0335}, {"b", 0.101}}},
      {"jagged_slices", kAnyN, {{Precision::fp16, 1}, {Precision::fp32, 0.793}, {Precision::fp64, 0.813},
        {Precision::tf32, 0.809}},
       {{"launch", 1.45}, {"c", 0.491}, {"spill", 0.891}, {"loads", 0.0362}, {"longest_row", 0.586},
        {"variation", 0.204}, {"mean_row", 0.312}, {"b", 0.229}}},
  };
}

inline std::vector<Preparation> preparation() {
  return {
      {"jagged_slices", {{"constant", 0.0429}, {"rows", 0.0706}}},
      {"jagged_slices?order=search", {{"constant", 0.24}, {"rows", 4.46}, {"windows_of_longest", 0.0149}}},
  };
}
// clang-format on

}  // namespace spmmbench::jagged_slices
