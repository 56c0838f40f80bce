#pragma once
// Written by scripts/refit.
//
// Factors of a call, in microseconds of:
//   launch (launches), b (us), c (us), spill (us), tiles (100 tiles an SM), parts (10 CTAs), depth
//   (10 tiles), filled_rows (100 rows an SM), variation (deviations), a_csr (us), gather_window
//   (us), longest_row (1000 nonzeros), ordered_gather (us)
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
       {{"launch", 1.99}, {"tiles", 2.14}, {"parts", 1.62}, {"variation", 0.209}, {"a_csr", 0.222}}},
      {"async_wcsr", kAnyN, {{Precision::fp16, 1}, {Precision::fp32, 1.22}, {Precision::tf32, 1.02}},
       {{"launch", 1.69}, {"b", 0.376}, {"c", 0.703}, {"spill", 0.335}, {"tiles", 1.74}, {"parts", 2.94},
        {"depth", 1.46}, {"variation", 0.197}, {"gather_window", 0.284}}},
      {"async_wcsr?order=search", 1, {{Precision::fp16, 1}, {Precision::tf32, 1.19}},
       {{"launch", 1.36}, {"c", 5.93}, {"parts", 1.17}, {"depth", 0.652}, {"filled_rows", 0.042},
        {"variation", 0.344}, {"ordered_gather", 1.71}}},
      {"async_wcsr?order=search", kAnyN, {{Precision::fp16, 1}, {Precision::fp32, 1.14}, {Precision::tf32, 1.02}},
       {{"launch", 1.7}, {"b", 0.395}, {"c", 0.667}, {"spill", 0.381}, {"tiles", 1.32}, {"parts", 2.71},
        {"depth", 1.58}, {"variation", 0.136}, {"longest_row", 0.233}, {"ordered_gather", 0.287}}},
  };
}

inline std::vector<Preparation> preparation() {
  return {
      {"async_wcsr", {{"constant", 0.0466}, {"nonzeros", 0.0237}, {"rows", 0.29}, {"windows_of_longest", 0.0243}}},
      {"async_wcsr?order=search", {{"constant", 0.114}, {"search_nonzeros", 0.635}, {"search_rows", 1.4}}},
  };
}
// clang-format on

}  // namespace spmmbench::async_wcsr
