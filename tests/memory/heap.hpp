#pragma once
// Counts what this program allocates with operator new, which heap.cpp replaces.

#include <cstdint>

namespace spmmbench::testing {

// Bytes that are allocated now, and the most that were since the last reset.
std::int64_t heap_bytes();
std::int64_t heap_peak();
void reset_heap_peak();

// While it lives, what would make the heap larger by more than so many bytes throws std::bad_alloc.
class HeapLimit {
 public:
  explicit HeapLimit(std::int64_t bytes);
  HeapLimit(const HeapLimit&) = delete;
  HeapLimit& operator=(const HeapLimit&) = delete;
  ~HeapLimit();
};

// The most that `body` and what it returns need at any time, beyond what is there already.
template <class Body>
std::int64_t peak_bytes_of(Body&& body) {
  const std::int64_t before = heap_bytes();
  reset_heap_peak();
  [[maybe_unused]] const auto result = body();
  return heap_peak() - before;
}

}  // namespace spmmbench::testing
