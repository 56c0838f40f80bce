#pragma once
// How long the threads of this process have worked, all together.

#include <ctime>

#include "core/steady_seconds.hpp"

namespace spmmbench {

inline double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// How many processors this process has used on the average, since this was made.
class ProcessorsUsed {
 public:
  double mean() const {
    const double seconds = steady_seconds() - start_;
    return seconds > 0 ? (processor_seconds() - before_) / seconds : 0;
  }

 private:
  double before_ = processor_seconds(), start_ = steady_seconds();
};

}  // namespace spmmbench
