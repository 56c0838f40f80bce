#pragma once
// Written by scripts/refit.
//
// Microseconds of a call:
//   launch (launches), dense_flops (us), dense_a (us), dense_spill (us),
//   dense_depth (1000 columns), dense_odd (1000 columns), dense_a_odd (us)
// and milliseconds of preparation:
//   constant (times), nonzeros (10^6), rows (10^6), entries (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::cublas_dense {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"cublas_dense", Precision::fp16, 1, 1,
       {2.179, 32.81, 0.1738, 0.5069, 0.4187, 0.4187, 0.1738},
       {0.1815, 1.209, 4.058, 0.0005914}},
      {"cublas_dense", Precision::fp16, 2, 2147483647,
       {2.449, 0.5448, 0.2956, 0.4916, 1.1, 1.588, 1.007},
       {0.1893, 1.184, 4.074, 0.0005945}},
      {"cublas_dense", Precision::fp32, 1, 1,
       {3.499, 132.6, 0.2607, 0.2807, 0.57, 0.57, 0.2607},
       {0.1962, 1.671, 10.05, 0.00142}},
      {"cublas_dense", Precision::fp32, 2, 2147483647,
       {5.407, 14.88, 0.8363, 0.04517, 0.9742, 0, 0.1128},
       {0.2049, 1.09, 4.999, 0.001328}},
      {"cublas_dense", Precision::tf32, 1, 1,
       {1.973, 141.8, 0.2787, 0.2634, 0, 0, 0.2787},
       {0.1408, 1.445, 7.469, 0.001495}},
      {"cublas_dense", Precision::tf32, 2, 2147483647,
       {4.677, 2.194, 0.6122, 0.156, 0.5608, 8.591, 0},
       {0.1965, 1.209, 7.867, 0.001204}},
  };
}
// clang-format on

}  // namespace spmmbench::cublas_dense
