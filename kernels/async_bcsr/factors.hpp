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
       {2.474, 0, 0.3748, 1},
       {0.164, 0.98, 17.11, 7.964e-06}},
      {"async_bcsr", Precision::fp16, 2, 2147483647,
       {2.353, 1.412, 0.452, 1},
       {0.1637, 0.9831, 16.39, 0}},
      {"async_bcsr", Precision::tf32, 2, 2147483647,
       {4.772, 10.63, 0.9175, 1.326},
       {0.1902, 0.8738, 13.46, 0}},
  };
}
// clang-format on

}  // namespace spmmbench::async_bcsr
