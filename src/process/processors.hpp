#pragma once
// The processors and the threads that this thread began with.

#include <omp.h>
#include <sched.h>

namespace spmmbench {

class Processors {
 public:
  Processors() : known_(sched_getaffinity(0, sizeof set_, &set_) == 0) {}
  // What one product chose for itself is not for the next.
  void restore() const {
    omp_set_num_threads(threads_);
    if (known_) sched_setaffinity(0, sizeof set_, &set_);
  }

 private:
  cpu_set_t set_ = {};
  bool known_;
  int threads_ = omp_get_max_threads();
};

}  // namespace spmmbench
