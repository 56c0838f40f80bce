#pragma once
// Exceptions must not leave an OpenMP region. This keeps the first one and throws it after the
// region.

#include <atomic>
#include <exception>
#include <mutex>

namespace spmmbench {

class ExceptionTrap {
 public:
  template <class Body>
  void run(Body body) noexcept {
    try {
      body();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!first_) first_ = std::current_exception();
      caught_ = true;
    }
  }
  bool caught() const { return caught_; }  // what is left need not be done
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
  std::atomic<bool> caught_ = false;
};

}  // namespace spmmbench
