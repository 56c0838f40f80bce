#pragma once
// How often other work takes the processors from this process.

#include <omp.h>
#include <sys/resource.h>

#include "core/steady_seconds.hpp"

namespace spmmbench {

// Counts from its construction on.
class Preemptions {
 public:
  // Context switches that other work must have forced, per second and OpenMP thread; 0 where there
  // were too few to tell, as in a run of a few milliseconds.
  double rate() const {
    constexpr long kFewest = 10;
    const long count = so_far() - before_;
    const double seconds = steady_seconds() - start_;
    if (count < kFewest || seconds <= 0) return 0;
    return static_cast<double>(count) / seconds / omp_get_max_threads();
  }

 private:
  // A thread that sleeps, as those of OpenMP do between products with OMP_WAIT_POLICY=passive,
  // takes the processor of another thread of this process when it wakes. So as many switches as
  // threads went to sleep may be the process's own.
  static long so_far() {
    rusage usage{};
    return ::getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw - usage.ru_nvcsw : 0;
  }
  long before_ = so_far();
  double start_ = steady_seconds();
};

}  // namespace spmmbench
