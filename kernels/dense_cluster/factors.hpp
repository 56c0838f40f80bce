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
       {0.7898, 0.3976, 0.5415, 0.198, 0.3424},
       {0.1038, 1.213, 10.61, 0.001324}},
      {"dense_cluster", Precision::fp16, 2, 2147483647,
       {0.6751, 0.6131, 0.3509, 0.1183, 0.3934},
       {0.1067, 1.151, 11.42, 0.001295}},
  };
}
// clang-format on

}  // namespace spmmbench::dense_cluster
