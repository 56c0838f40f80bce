#pragma once
// Written by scripts/refit.
//
// Microseconds of a call:
//   launch (launches), expected (us), copies (us), dense_a (us), dense_spill (us)
// and milliseconds of preparation:
//   constant (times), nonzeros (10^6), rows (10^6), entries (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::dense_cluster {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"dense_cluster", Precision::fp16, 1, 1,
       {0.7895, 0.3978, 0.5417, 0.1978, 0.3426},
       {0.1038, 1.213, 10.61, 0.001324}},
      {"dense_cluster", Precision::fp16, 2, 2147483647,
       {0.6747, 0.6126, 0.3512, 0.1188, 0.393},
       {0.1078, 1.15, 11.43, 0.001322}},
  };
}
// clang-format on

}  // namespace spmmbench::dense_cluster
