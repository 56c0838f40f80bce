#pragma once
// Written by scripts/refit.
//
// Factors of a call, in microseconds of:
//   launch (launches), b (us), slots (100,000 an SM), slot_groups (100,000 an SM)
// and of preparation beyond the copy of A, in milliseconds of:
//   constant (times), nonzeros (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::gather_mma {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"gather_mma", kAnyN, {{Precision::fp16, 1}},
       {{"launch", 4.32}, {"b", 34.4}, {"slots", 3.35}, {"slot_groups", 8.8}}},
  };
}

inline std::vector<Preparation> preparation() {
  return {
      {"gather_mma", {{"constant", 0.224}, {"nonzeros", 0.511}}},
  };
}
// clang-format on

}  // namespace spmmbench::gather_mma
