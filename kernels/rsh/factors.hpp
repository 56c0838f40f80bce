#pragma once
// Written by scripts/refit.
//
// Factors of a call, in microseconds of:
//   launch (launches), c (us), cut (times), depth (10 tiles), ordered_tiles (100 tiles an SM)
// and of preparation beyond the copy of A, in milliseconds of:
//   constant (times), nonzeros (10^6), windows_of_longest (1000 nonzeros), search (times),
//   search_nonzeros (10^6), search_rows (10^6)

#include <vector>

#include "select/estimate.hpp"

namespace spmmbench::rsh {

// clang-format off
inline std::vector<Factors> factors() {
  return {
      {"rsh", kAnyN, {{Precision::fp16, 1}, {Precision::fp8_e4m3, 1.13}, {Precision::tf32, 0.978}},
       {{"launch", 2.34}, {"c", 1.13}, {"cut", 1.82}, {"depth", 1.81}, {"ordered_tiles", 2.43}}},
  };
}

inline std::vector<Preparation> preparation() {
  return {
      {"rsh", {{"constant", 0.219}, {"nonzeros", 0.0672}, {"windows_of_longest", 0.0183}, {"search", 0.0396},
       {"search_nonzeros", 0.56}, {"search_rows", 1.61}}},
  };
}
// clang-format on

}  // namespace spmmbench::rsh
