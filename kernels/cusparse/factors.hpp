#pragma once
// Written by scripts/refit.
//
// Factors of a call, in microseconds of:
//   launch (launches), a_csr (us), c (us), spill (us), gather_rows (us), gather_distinct (us),
//   nonzeros (100 an SM), rows (100 rows an SM), longest_row (1000 nonzeros)
// and of preparation beyond the copy of A, in milliseconds of:
//   constant (times), nonzeros (10^6), rows (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::cusparse {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"cusparse_csr_alg3", 32, {{Precision::fp32, 1}, {Precision::fp64, 1.59}, {Precision::tf32, 0.996}},
       {{"launch", 3.75}, {"spill", 1.53}, {"gather_rows", 0.375}, {"nonzeros", 0.0879}, {"rows", 1.14},
        {"longest_row", 2.44}}},
      {"cusparse_csr_alg3", kAnyN, {{Precision::fp32, 1}, {Precision::fp64, 1.24}, {Precision::tf32, 1.01}},
       {{"launch", 3.94}, {"spill", 2.09}, {"gather_rows", 0.288}, {"nonzeros", 0.152}, {"rows", 2.97},
        {"longest_row", 2.16}}},
      {"cusparse_csr_default", 1, {{Precision::fp16, 1}, {Precision::fp32, 1.07}, {Precision::fp64, 1.3},
        {Precision::tf32, 1.06}},
       {{"launch", 6.5}, {"a_csr", 0.586}, {"gather_distinct", 0.954}, {"longest_row", 0.421}}},
      {"cusparse_csr_default", kAnyN, {{Precision::fp16, 1}, {Precision::fp32, 0.77}, {Precision::fp64, 0.811},
        {Precision::tf32, 0.784}},
       {{"launch", 8.69}, {"c", 1.27}, {"nonzeros", 0.507}, {"rows", 2.31}}},
      {"cusparse_spmv_sell", kAnyN, {{Precision::fp16, 1}, {Precision::fp32, 1.19}, {Precision::fp64, 1.49},
        {Precision::tf32, 1.21}},
       {{"nonzeros", 0.0347}, {"longest_row", 67.7}}},
  };
}

inline std::vector<Preparation> preparation() {
  return {
      {"cusparse_csr_alg3", {{"constant", 0.0347}, {"nonzeros", 0.0105}, {"rows", 10.9}}},
      {"cusparse_spmv_sell", {{"nonzeros", 0.0161}}},
  };
}
// clang-format on

}  // namespace spmmbench::cusparse
