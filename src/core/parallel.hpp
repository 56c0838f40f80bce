#pragma once
// An exception that leaves an OpenMP region ends the program. Code in a region that may throw, as
// all that allocates may, goes through one of these, which throw after the region.

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <type_traits>

namespace spmmbench {

// Keeps the first exception.
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

// Calls body(table, i) for every i below `count`. Each of the threads has a table of its own, which
// make() returns, and takes `chunk` numbers at a time.
template <class Make, class Body>
void for_each_with_table(std::int64_t count, std::int64_t chunk, int threads, const Make& make,
                         const Body& body) {
  using Table = std::decay_t<decltype(make())>;
  ExceptionTrap trap;
#pragma omp parallel num_threads(threads)
  {
    std::unique_ptr<Table> table;
    trap.run([&] { table = std::make_unique<Table>(make()); });
#pragma omp for schedule(dynamic, chunk)
    for (std::int64_t i = 0; i < count; ++i)
      if (!trap.caught()) trap.run([&] { body(*table, i); });
  }
  trap.rethrow();
}

}  // namespace spmmbench
