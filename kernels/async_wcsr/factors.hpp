#pragma once
// Written by scripts/refit.
//
// Factors of a call, in microseconds of:
//   launch (launches), b (us), c (us), spill (us), tiles (100 tiles an SM), cut (times), depth (10
//   tiles), variation (deviations), a_csr (us), gather_window (us), longest_row (1000 nonzeros),
//   ordered_gather (us)
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
      {"async_wcsr", 8, {{Precision::fp16, 1}, {Precision::tf32, 1.34}},
       {{"launch", 1.93}, {"tiles", 2.16}, {"cut", 1.03}, {"variation", 0.234}, {"a_csr", 0.198}}},
      {"async_wcsr", kAnyN, {{Precision::fp16, 1}, {Precision::fp32, 1.22}, {Precision::tf32, 1.03}},
       {{"launch", 1.6}, {"b", 0.377}, {"c", 0.738}, {"spill", 0.314}, {"tiles", 1.71}, {"cut", 1.67},
        {"depth", 1.45}, {"variation", 0.233}, {"gather_window", 0.285}}},
      {"async_wcsr?order=search", 1, {{Precision::fp16, 1}, {Precision::tf32, 1.18}},
       {{"launch", 1.56}, {"c", 5.88}, {"depth", 0.525}, {"variation", 0.283}, {"ordered_gather", 1.79}}},
      {"async_wcsr?order=search", kAnyN, {{Precision::fp16, 1}, {Precision::fp32, 1.15}, {Precision::tf32, 1.02}},
       {{"launch", 1.59}, {"b", 0.397}, {"c", 0.702}, {"spill", 0.359}, {"tiles", 1.33}, {"cut", 1.64},
        {"depth", 1.57}, {"variation", 0.209}, {"longest_row", 0.168}, {"ordered_gather", 0.277}}},
  };
}

inline std::vector<Preparation> preparation() {
  return {
      {"async_wcsr", {{"constant", 0.0484}, {"nonzeros", 0.0243}, {"rows", 0.239}, {"windows_of_longest", 0.0191}}},
      {"async_wcsr?order=search", {{"constant", 0.114}, {"search_nonzeros", 0.635}, {"search_rows", 1.4}}},
  };
}
// clang-format on

}  // namespace spmmbench::async_wcsr
