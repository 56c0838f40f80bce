#pragma once
// Written by scripts/refit.
//
// Factors of a call, in microseconds of:
//   launch (launches), b (us), c (us), spill (us), tiles (100 tiles an SM), cut (times), depth (10
//   tiles), variation (deviations), by_rows (us), a_csr (us), gather_window (us), longest_row (1000
//   nonzeros), ordered_gather (us)
// and of preparation beyond the copy of A, in milliseconds of:
//   constant (times), nonzeros (10^6), rows (10^6), windows_of_longest (1000 nonzeros),
//   search_nonzeros (10^6), search_rows (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::async_wcsr {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"async_wcsr", 1, {{Precision::fp16, 1}, {Precision::tf32, 1.31}},
       {{"launch", 1.83}, {"tiles", 1.51}}},
      {"async_wcsr", 8, {{Precision::fp16, 1}, {Precision::fp8_e4m3, 1.05}, {Precision::tf32, 1.34}},
       {{"launch", 1.93}, {"tiles", 2.16}, {"cut", 1.02}, {"variation", 0.233}, {"by_rows", 1}, {"a_csr", 0.196}}},
      {"async_wcsr", kAnyN, {{Precision::fp16, 1}, {Precision::fp32, 1.22}, {Precision::fp8_e4m3, 1.01},
        {Precision::tf32, 1.03}},
       {{"launch", 1.61}, {"b", 0.376}, {"c", 0.74}, {"spill", 0.313}, {"tiles", 1.71}, {"cut", 1.66},
        {"depth", 1.45}, {"variation", 0.231}, {"by_rows", 1}, {"gather_window", 0.286}}},
      {"async_wcsr?order=search", 1, {{Precision::fp16, 1}, {Precision::tf32, 1.18}},
       {{"launch", 1.56}, {"c", 5.88}, {"depth", 0.525}, {"variation", 0.283}, {"ordered_gather", 1.79}}},
      {"async_wcsr?order=search", kAnyN, {{Precision::fp16, 1}, {Precision::fp32, 1.15},
        {Precision::fp8_e4m3, 0.993}, {Precision::tf32, 1.02}},
       {{"launch", 1.6}, {"b", 0.392}, {"c", 0.706}, {"spill", 0.357}, {"tiles", 1.33}, {"cut", 1.64},
        {"depth", 1.56}, {"variation", 0.208}, {"by_rows", 1}, {"longest_row", 0.165}, {"ordered_gather", 0.279}}},
  };
}

inline std::vector<Preparation> preparation() {
  return {
      {"async_wcsr", {{"constant", 0.0488}, {"nonzeros", 0.0242}, {"rows", 0.238}, {"windows_of_longest", 0.0191}}},
      {"async_wcsr?order=search", {{"constant", 0.114}, {"search_nonzeros", 0.633}, {"search_rows", 1.42}}},
  };
}
// clang-format on

}  // namespace spmmbench::async_wcsr
