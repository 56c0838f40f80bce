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
      {"csr_merge", Precision::fp64, 1, 1,
       {5.912, 0.4217, 0, 0, 4.565, 0.6594, 1.656, 0.02995, 0},
       {0.02083, 1.085, 0.3269}},
      {"csr_merge", Precision::fp64, 2, 2147483647,
       {4.171, 3.722, 0.2417, 0, 0.762, 0.4423, 0.5679, 0.03787, 0.09827},
       {0.02661, 1.103, 0.3045}},
  };
}
// clang-format on

}  // namespace spmmbench::csr_merge
