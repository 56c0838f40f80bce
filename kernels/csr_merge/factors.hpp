#pragma once
// Written by scripts/refit.
//
// Microseconds of a call:
//   launch (launches), a_csr (us), b (us), c (us), spill (us), gather_rows (us),
//   gather_shared (us), nonzeros (100 an SM), rows (100 an SM)
// and milliseconds of preparation:
//   constant (times), nonzeros (10^6), rows (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::csr_merge {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"csr_merge", Precision::fp16, 1, 1,
       {6.059, 0.5469, 0.7756, 0, 0.2778, 0.3529, 0.6191, 0.01603, 0},
       {0.06525, 0.9698, 0.4126}},
      {"csr_merge", Precision::fp16, 2, 16,
       {8.709, 0.9467, 0, 2.43, 0.4654, 0.4243, 1.209, 0.0193, 0.2381},
       {0.06525, 0.9698, 0.4126}},
      {"csr_merge", Precision::fp16, 17, 2147483647,
       {5.919, 6.747, 0.9726, 0.6638, 0.3172, 0.4427, 0.4236, 0.04976, 0.06274},
       {0.06525, 0.9698, 0.4126}},
      {"csr_merge", Precision::fp32, 1, 1,
       {7.685, 0.4816, 0.3115, 1.246, 0.6816, 0.3413, 0.5566, 0.0155, 0.01544},
       {0.04356, 0.6512, 0.7064}},
      {"csr_merge", Precision::fp32, 2, 16,
       {6.985, 0.7067, 3.513, 3.513, 0, 0.3584, 0.3584, 0.01628, 0.3483},
       {0.04356, 0.6512, 0.7064}},
      {"csr_merge", Precision::fp32, 17, 2147483647,
       {3.954, 5.631, 0.2614, 0, 0.8263, 0.1851, 0.4111, 0.1053, 0.2255},
       {0.04356, 0.6512, 0.7064}},
      {"csr_merge", Precision::fp64, 1, 1,
       {5.912, 0.4214, 0, 0, 4.559, 0.6593, 1.656, 0.02994, 0},
       {0.02511, 1.098, 0.3105}},
      {"csr_merge", Precision::fp64, 2, 16,
       {4.172, 3.718, 0.2417, 0, 0.7614, 0.4423, 0.5679, 0.03786, 0.09814},
       {0.02511, 1.098, 0.3105}},
      {"csr_merge", Precision::fp64, 17, 2147483647,
       {4.172, 3.718, 0.2417, 0, 0.7614, 0.4423, 0.5679, 0.03786, 0.09814},
       {0.02511, 1.098, 0.3105}},
  };
}
// clang-format on

}  // namespace spmmbench::csr_merge
