#pragma once
// Written by scripts/refit.
//
// Factors of a call, in microseconds of:
//   launch (launches), a_of_slabs (us), c (us), spill (us), gather_rows (us), gather_shared (us)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::csr_merge {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"csr_merge", 32, {{Precision::fp16, 1}, {Precision::fp32, 0.883}, {Precision::fp64, 0.76}},
       {{"launch", 7.08}, {"a_of_slabs", 1.9}, {"c", 1.29}, {"spill", 1.17}, {"gather_rows", 0.623},
        {"gather_shared", 1.02}}},
      {"csr_merge", kAnyN, {{Precision::fp16, 1}, {Precision::fp32, 0.763}, {Precision::fp64, 0.698}},
       {{"launch", 5.18}, {"a_of_slabs", 19.7}, {"spill", 1.15}, {"gather_shared", 0.719}}},
  };
}

inline std::vector<Preparation> preparation() {
  return {};
}
// clang-format on

}  // namespace spmmbench::csr_merge
