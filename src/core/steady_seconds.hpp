#pragma once

#include <chrono>

namespace spmmbench {

// Seconds since an arbitrary origin, by a clock that is never set.
inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace spmmbench
