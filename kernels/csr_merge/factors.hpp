#pragma once
// Written by scripts/refit.
//
// Factors of a call, in microseconds of:
//   launch (launches), a_of_slabs (us), spill (us), gather_shared (us), nonzeros (100 an SM), loads
//   (100 loads an SM)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::csr_merge {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"csr_merge", 1, {{Precision::fp16, 1}, {Precision::fp32, 1.15}, {Precision::fp64, 1.16}},
       {{"launch", 6.18}, {"a_of_slabs", 1.2}, {"nonzeros", 0.0206}, {"loads", 0.0206}}},
      {"csr_merge", 32, {{Precision::fp16, 1}, {Precision::fp32, 0.76}, {Precision::fp64, 0.642}},
       {{"launch", 7.13}, {"a_of_slabs", 7.39}, {"nonzeros", 0.00728}, {"loads", 0.0354}}},
      {"csr_merge", kAnyN, {{Precision::fp16, 1}, {Precision::fp32, 0.77}, {Precision::fp64, 0.715}},
       {{"launch", 5.33}, {"a_of_slabs", 16.1}, {"spill", 1.14}, {"gather_shared", 0.585}, {"loads", 0.00538}}},
  };
}

inline std::vector<Preparation> preparation() {
  return {};
}
// clang-format on

}  // namespace spmmbench::csr_merge
