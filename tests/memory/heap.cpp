#include "heap.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>

namespace {

std::atomic<std::int64_t> live = 0, peak = 0, limit = std::numeric_limits<std::int64_t>::max();

constexpr std::size_t kHeader = alignof(std::max_align_t);  // holds the size

void* allocate(std::size_t size) {
  if (live + static_cast<std::int64_t>(size) > limit) throw std::bad_alloc();
  auto* const header = static_cast<std::size_t*>(std::malloc(size + kHeader));
  if (header == nullptr) throw std::bad_alloc();
  *header = size;
  const std::int64_t now = live += static_cast<std::int64_t>(size);
  for (std::int64_t most = peak; now > most && !peak.compare_exchange_weak(most, now);) {
  }
  return reinterpret_cast<std::byte*>(header) + kHeader;
}

void release(void* memory) noexcept {
  if (memory == nullptr) return;
  auto* const header = reinterpret_cast<std::size_t*>(static_cast<std::byte*>(memory) - kHeader);
  live -= static_cast<std::int64_t>(*header);
  std::free(header);
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }

namespace spmmbench::testing {

std::int64_t heap_bytes() { return live; }
std::int64_t heap_peak() { return peak; }
void reset_heap_peak() { peak = live.load(); }

HeapLimit::HeapLimit(std::int64_t bytes) { limit = live + bytes; }
HeapLimit::~HeapLimit() { limit = std::numeric_limits<std::int64_t>::max(); }

}  // namespace spmmbench::testing
