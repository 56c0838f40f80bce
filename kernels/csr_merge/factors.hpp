#pragma once
// Written by scripts/refit.
//
// Microseconds of a call:
//   launch (launches), a_csr (us), b (us), c (us), spill (us), gather_rows (us),
//   gather_distinct (us), nonzeros (100 an SM), rows (100 an SM)
// and milliseconds of preparation:
//   constant (times), nonzeros (10^6), rows (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::csr_merge {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"csr_merge", Precision::fp16, 1, 1,
       {6.059, 0.5474, 0.7763, 0, 0.278, 0.3529, 0.6191, 0.01603, 0},
       {0.04593, 1.022, 0.1566}},
      {"csr_merge", Precision::fp16, 2, 2147483647,
       {7.835, 6.103, 0.797, 0.4319, 0.5728, 0.4181, 0.5004, 0.03665, 0.01269},
       {0.05578, 1.04, 0.1376}},
      {"csr_merge", Precision::fp32, 1, 1,
       {7.685, 0.4821, 0.3102, 1.241, 0.6828, 0.3414, 0.5576, 0.01551, 0.01536},
       {0.04304, 0.7269, 2.393}},
      {"csr_merge", Precision::fp32, 2, 2147483647,
       {4.932, 3.375, 0.7562, 0.7562, 0, 0.3564, 0.487, 0.03528, 0.5712},
       {0.06994, 0.75, 2.38}},
      {"csr_merge", Precision::fp64, 1, 1,
       {5.912, 0.4218, 0, 0, 4.563, 0.6593, 1.656, 0.02994, 0},
       {0.02083, 1.085, 0.327}},
      {"csr_merge", Precision::fp64, 2, 2147483647,
       {4.172, 3.722, 0.2419, 0, 0.7621, 0.4423, 0.5679, 0.03786, 0.09814},
       {0.02661, 1.103, 0.3047}},
  };
}
// clang-format on

}  // namespace spmmbench::csr_merge
