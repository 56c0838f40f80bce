#pragma once
// Written by scripts/refit.
//
// Factors of a call, in microseconds of:
//   launch (launches), c (us), spill (us), loads (100 loads an SM), longest_row (1000 nonzeros),
//   variation (deviations), mean_row (100 nonzeros), scattered (share), lone_loads (100 loads an
//   SM), by_rows (us), b (us)
// and of preparation beyond the copy of A, in milliseconds of:
//   constant (times), nonzeros (10^6), rows (10^6), windows_of_longest (1000 nonzeros)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::jagged_slices {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"jagged_slices", 1, {{Precision::fp16, 1}, {Precision::fp32, 1.08}, {Precision::fp64, 1.19},
        {Precision::fp8_e4m3, 0.946}, {Precision::tf32, 1.09}},
       {{"launch", 0.607}, {"loads", 0.0196}, {"longest_row", 0.494}, {"mean_row", 0.216}, {"scattered", 0.799},
        {"lone_loads", 0.0318}, {"b", 0.113}}},
      {"jagged_slices", kAnyN, {{Precision::fp16, 1}, {Precision::fp32, 0.8}, {Precision::fp64, 0.83},
        {Precision::fp8_e4m3, 1.17}, {Precision::tf32, 0.817}},
       {{"launch", 0.794}, {"c", 0.485}, {"spill", 0.913}, {"loads", 0.036}, {"longest_row", 0.628},
        {"variation", 0.0679}, {"mean_row", 0.485}, {"scattered", 1.15}, {"by_rows", 1}, {"b", 0.154}}},
  };
}

inline std::vector<Preparation> preparation() {
  return {
      {"jagged_slices", {{"constant", 0.0407}, {"nonzeros", 0.00649}, {"rows", 0.0312}}},
      {"jagged_slices?order=search", {{"constant", 0.242}, {"rows", 4.3}, {"windows_of_longest", 0.0131}}},
  };
}
// clang-format on

}  // namespace spmmbench::jagged_slices
