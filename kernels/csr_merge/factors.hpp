#pragma once
// Written by scripts/refit.
//
// Factors of a call, in microseconds of:
//   launch (launches), a_of_slabs (us), spill (us), gather_shared (us), nonzeros (100 an SM), loads
//   (100 loads an SM), by_rows (us), empty_rows (100 rows an SM)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::csr_merge {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"csr_merge", 1, {{Precision::fp16, 1}, {Precision::fp32, 1.14}, {Precision::fp64, 1.15},
        {Precision::fp8_e4m3, 1}},
       {{"launch", 6.14}, {"a_of_slabs", 1.32}, {"nonzeros", 0.0195}, {"loads", 0.0195}}},
      {"csr_merge", 32, {{Precision::fp16, 1}, {Precision::fp32, 0.81}, {Precision::fp64, 0.627},
        {Precision::fp8_e4m3, 1.14}},
       {{"launch", 6.05}, {"a_of_slabs", 5.15}, {"loads", 0.044}, {"by_rows", 1}, {"empty_rows", 1.51}}},
      {"csr_merge", kAnyN, {{Precision::fp16, 1}, {Precision::fp32, 0.767}, {Precision::fp64, 0.712},
        {Precision::fp8_e4m3, 1.17}},
       {{"launch", 5.27}, {"a_of_slabs", 16.2}, {"spill", 1.12}, {"gather_shared", 0.585}, {"loads", 0.00548},
        {"by_rows", 1}}},
  };
}

inline std::vector<Preparation> preparation() {
  return {};
}
// clang-format on

}  // namespace spmmbench::csr_merge
