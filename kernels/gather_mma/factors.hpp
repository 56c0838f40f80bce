#pragma once
// Written by scripts/refit.
//
// Factors of a call, in microseconds of:
//   launch (launches), b (us), slot_groups (100,000 an SM)
// and of preparation beyond the copy of A, in milliseconds of:
//   constant (times), nonzeros (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::gather_mma {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"gather_mma", kAnyN, {{Precision::fp16, 1}, {Precision::fp8_e4m3, 0.825}},
       {{"launch", 4.23}, {"b", 34.3}, {"slot_groups", 11.3}}},
  };
}

inline std::vector<Preparation> preparation() {
  return {
      {"gather_mma", {{"constant", 0.228}, {"nonzeros", 0.51}}},
  };
}
// clang-format on

}  // namespace spmmbench::gather_mma
