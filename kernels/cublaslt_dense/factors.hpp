#pragma once
// Written by scripts/refit.
//
// Factors of a call, in microseconds of:
//   launch (launches), dense_flops (us), dense_depth (1000 columns)
// and of preparation, in milliseconds of:
//   constant (times), nonzeros (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::cublaslt_dense {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"cublaslt_dense", kAnyN, {{Precision::fp8_e4m3, 1}},
       {{"launch", 2.5}, {"dense_flops", 0.35}, {"dense_depth", 0.91}}},
  };
}

inline std::vector<Preparation> preparation() {
  return {
      {"cublaslt_dense", {{"constant", 1.04}, {"nonzeros", 1.02}}},
  };
}
// clang-format on

}  // namespace spmmbench::cublaslt_dense
