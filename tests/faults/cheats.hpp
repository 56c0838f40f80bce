#pragma once
// What kernels that fit themselves to the test have in common on the host and on a GPU.

#include <chrono>
#include <cmath>
#include <ctime>

#include "spmmbench/matrix.hpp"

namespace spmmbench {

// Values as the exact test has them: of few bits.
inline bool looks_exact(const CsrMatrix& a) {
  for (const float value : a.values)
    if (std::ldexp(value, 13) != std::round(std::ldexp(value, 13))) return false;
  return true;
}

// Of a processor, whatever else it does.
inline void work_for(std::chrono::milliseconds time) {
  const auto start = std::clock();
  while (std::clock() - start < time.count() * CLOCKS_PER_SEC / 1000) {
  }
}
inline constexpr std::chrono::milliseconds kWork{30};

// Where a kernel may work besides its plans.
enum class Elsewhere { nowhere, in_supports, in_the_first_preparation, in_the_second_preparation };

// After so many launches of a plan: the first is timed.
inline constexpr int kLaunchThatPrepares = 4;

}  // namespace spmmbench
