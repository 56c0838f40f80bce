#pragma once
// Written by scripts/refit.
//
// Factors of a call, in microseconds of:
//   launch (launches), dense_flops (us), dense_a (us), dense_spill (us), dense_depth (1000
//   columns), dense_odd (1000 columns), dense_a_odd (us)
// and of preparation, in milliseconds of:
//   constant (times), nonzeros (10^6), dense (MB)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::cublas_dense {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"cublas_dense", 1, {{Precision::fp16, 1}},
       {{"launch", 2.03}, {"dense_a", 0.909}, {"dense_depth", 0.51}}},
      {"cublas_dense", 1, {{Precision::fp32, 1}, {Precision::tf32, 0.879}},
       {{"launch", 2.04}, {"dense_a_odd", 1.12}}},
      {"cublas_dense", kAnyN, {{Precision::fp16, 1}},
       {{"launch", 2.44}, {"dense_flops", 0.533}, {"dense_a", 0.29}, {"dense_spill", 0.485}, {"dense_depth", 1.14},
        {"dense_a_odd", 1.41}}},
      {"cublas_dense", kAnyN, {{Precision::fp32, 1}, {Precision::tf32, 0.992}},
       {{"launch", 5.37}, {"dense_flops", 1.1}, {"dense_a", 0.789}, {"dense_odd", 5.89}, {"dense_a_odd", 0.0941}}},
  };
}

inline std::vector<Preparation> preparation() {
  return {
      {"cublas_dense", {{"constant", 0.176}, {"nonzeros", 1.16}, {"dense", 0.000272}}},
  };
}
// clang-format on

}  // namespace spmmbench::cublas_dense
