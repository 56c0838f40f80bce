#pragma once
// Written by scripts/refit.
//
// Microseconds of a call:
//   launch (launches), c (us), block_steps (blocks), block_spill (us)
// and milliseconds of preparation:
//   constant (times), nonzeros (10^6), rows (10^6), stored (10^6 entries)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::async_bcsr {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"async_bcsr", Precision::fp16, 1, 1,
       {2.476, 0, 0.3747, 1},
       {0.1927, 1.879, 0, 1.269}},
      {"async_bcsr", Precision::fp16, 2, 2147483647,
       {2.342, 1.415, 0.4531, 1},
       {0.2232, 1.987, 0, 1.24}},
      {"async_bcsr", Precision::tf32, 2, 2147483647,
       {4.8, 10.77, 0.9056, 1.394},
       {0, 8.46, 0, 1.224}},
  };
}
// clang-format on

}  // namespace spmmbench::async_bcsr
