#pragma once
// Written by scripts/refit.
//
// Factors of a call, in microseconds of:
//   launch (launches), a_csr (us), c (us), spill (us), gather_rows (us), gather_shared (us)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::csr_merge {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"csr_merge", 32, {{Precision::fp16, 1}, {Precision::fp32, 0.883}, {Precision::fp64, 0.76}},
       {{"launch", 7.08}, {"a_csr", 1.9}, {"c", 1.29}, {"spill", 1.17}, {"gather_rows", 0.623},
        {"gather_shared", 1.02}}},
      {"csr_merge", kAnyN, {{Precision::fp16, 1}, {Precision::fp32, 0.821}, {Precision::fp64, 0.859}},
       {{"launch", 4.99}, {"a_csr", 7.82}, {"c", 0.494}, {"spill", 0.891}, {"gather_rows", 0.547},
        {"gather_shared", 0.571}}},
  };
}

inline std::vector<Preparation> preparation() {
  return {};
}
// clang-format on

}  // namespace spmmbench::csr_merge
