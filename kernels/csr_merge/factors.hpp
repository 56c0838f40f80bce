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
       {6.059, 0.5473, 0.7758, 0, 0.2783, 0.3529, 0.6194, 0.01603, 0},
       {0.04592, 1.022, 0.1563}},
      {"csr_merge", Precision::fp16, 2, 2147483647,
       {7.836, 6.104, 0.7978, 0.4311, 0.5731, 0.418, 0.5005, 0.03662, 0.01266},
       {0.05578, 1.04, 0.1378}},
  };
}
// clang-format on

}  // namespace spmmbench::csr_merge
