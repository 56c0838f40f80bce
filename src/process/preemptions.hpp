#pragma once
// How often other work takes the processors from this process.

#include <omp.h>
#include <sys/resource.h>

#include "core/steady_seconds.hpp"

namespace spmmbench {

// Counts from its construction on.
class Preemptions {
 public:
  // Involuntary context switches per second and OpenMP thread.
  double rate() const {
    const double seconds = steady_seconds() - start_;
    return seconds > 0 ? static_cast<double>(so_far() - before_) / seconds / omp_get_max_threads()
                       : 0;
  }

 private:
  static long so_far() {
    rusage usage{};
    return ::getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
  }
  long before_ = so_far();
  double start_ = steady_seconds();
};

}  // namespace spmmbench
