#pragma once
// Made by scripts/fit_selection.py from fourn_f.json. Do not edit.

#include <array>
#include <cstdint>
#include <string_view>

#include "spmmbench/precision.hpp"

namespace spmmbench {

struct Coefficients {
  std::string_view candidate;  // a kernel's Spec
  Precision precision;
  std::int64_t least_n, most_n;      // columns of B that the row is for
  std::array<double, 14> us;         // factors of the terms in the order of Terms (predict.hpp)
  std::array<double, 4> prepare_ms;  // constant, per million nonzeros, rows, entries of dense A
  double margin;                     // factor of the prediction when kernels are ranked
};

inline constexpr std::array<Coefficients, 7> kCoefficients = {{
    {"async_wcsr",
     Precision::fp16,
     33,
     2147483647,
     {1.7598, 0.65911, 0.79433, 0.96224, 0, 0, 0.16596, 2.0796, 0, 0, 0.19329, 0.28247, 0, 0},
     {2.1492, 1.5995, 0, 0},
     1},
    {"csr_row_split",
     Precision::fp16,
     33,
     2147483647,
     {1.3638, 0.24598, 1.3547, 0.79661, 0.57834, 0, 0, 0, 0.023185, 0, 2.3302, 0.60479, 0, 0},
     {0.43165, 1.6108, 13.968, 0},
     1},
    {"cublas_dense",
     Precision::fp16,
     33,
     2147483647,
     {0, 0, 46.344, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1.5915, 0.67209},
     {0.7241, 1.0924, 9.0105, 0.00054271},
     1},
    {"cusparse_csr_alg2",
     Precision::fp16,
     33,
     2147483647,
     {4.682, 3.8253, 2.3109, 0, 0.20045, 0, 0, 0, 0.48645, 2.9391, 1.4209, 0, 0, 0},
     {0.78658, 1.4029, 2.2888, 0},
     1},
    {"cusparse_csr_alg3",
     Precision::fp16,
     33,
     2147483647,
     {0, 0, 0, 4.8236, 0.52109, 0.31664, 0, 0, 0, 0, 58.099, 0, 0, 0},
     {0.78774, 1.9944, 19.735, 0},
     1},
    {"cusparse_csr_default",
     Precision::fp16,
     33,
     2147483647,
     {4.7433, 3.6942, 2.2945, 0.00061104, 0.19955, 0, 0, 0, 0.48687, 2.9523, 1.4201, 0, 0, 0},
     {0.44899, 1.7611, 3.5979, 0},
     1},
    {"rsh",
     Precision::fp16,
     33,
     2147483647,
     {2.4217, 1.0012, 0.80198, 1.0368, 0, 0.0006379, 0, 1.6787, 0, 0, 0.47837, 0, 0, 0},
     {18.877, 11.996, 0, 0},
     0.95},
}};

}  // namespace spmmbench
