#pragma once
// Written by scripts/refit.
//
// Factors of a call, in microseconds of:
//   launch (launches), c (us), block_steps (blocks), block_spill (us)
// and of preparation beyond the copy of A, in milliseconds of:
//   constant (times), nonzeros (10^6), rows (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::async_bcsr {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"async_bcsr", kAnyN, {{Precision::fp16, 1}, {Precision::fp8_e4m3, 0.664}, {Precision::tf32, 2.24}},
       {{"launch", 2.35}, {"c", 1.44}, {"block_steps", 0.445}, {"block_spill", 1}}},
  };
}

inline std::vector<Preparation> preparation() {
  return {
      {"async_bcsr", {{"constant", 0.094}, {"nonzeros", 0.0136}, {"rows", 18.7}}},
  };
}
// clang-format on

}  // namespace spmmbench::async_bcsr
