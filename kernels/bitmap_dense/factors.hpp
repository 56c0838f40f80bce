#pragma once
// Written by scripts/refit.
//
// Factors of a call, in microseconds of:
//   ends (100 columns), units (256 columns), wide_units (100 x 256 columns), cut (times), joined
//   (100 columns), bitmap_spill (us)
// and of preparation beyond the copy of A, in milliseconds of:
//   constant (times), nonzeros (10^6), rows (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::bitmap_dense {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"bitmap_dense", kAnyN, {{Precision::fp16, 1}, {Precision::fp8_e4m3, 0.994}},
       {{"ends", 4.47}, {"units", 1.67}, {"wide_units", 0.212}, {"cut", 4.12}, {"joined", 0.567},
        {"bitmap_spill", 0.676}}},
  };
}

inline std::vector<Preparation> preparation() {
  return {
      {"bitmap_dense", {{"constant", 0.0756}, {"nonzeros", 0.0441}, {"rows", 13.9}}},
  };
}
// clang-format on

}  // namespace spmmbench::bitmap_dense
