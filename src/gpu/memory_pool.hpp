#pragma once
// Keeps freed blocks of device memory for allocations of nearly that size. cudaMalloc and cudaFree
// take 5 us to 0.5 ms, as long as many a preparation.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace spmmbench {

class MemoryPool {
 public:
  // `take` returns null where the memory is not there, and throws what else fails. `give` does not
  // throw.
  MemoryPool(std::function<void*(std::size_t)> take, std::function<void(void*)> give)
      : take_(std::move(take)), give_(std::move(give)) {}
  ~MemoryPool() { trim(); }
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  struct Block {
    void* data = nullptr;  // null: out of memory
    bool in_use = false;   // maybe: work that was enqueued before it was freed may still run
  };

  Block allocate(std::size_t bytes) {
    const std::size_t size = block_size(bytes);
    const std::scoped_lock lock(mutex_);
    if (const auto found = kept_.lower_bound(size);
        found != kept_.end() && found->first <= size + size / kMayBeLarger) {
      const auto [data, released] = found->second;
      kept_bytes_ -= found->first;
      sizes_.emplace(data, found->first);
      kept_.erase(found);
      return {data, released >= waited_};
    }
    void* data = take_(size);
    if (data == nullptr && !kept_.empty()) {
      give_back();
      data = take_(size);
    }
    if (data != nullptr) sizes_.emplace(data, size);
    return {data, false};
  }

  void release(void* data) noexcept {
    const std::scoped_lock lock(mutex_);
    const auto found = sizes_.find(data);
    const std::size_t size = found->second;
    sizes_.erase(found);
    if (size > kLargestKept || kept_bytes_ + size > kMostKept) return give_(data);
    kept_.emplace(size, Kept{data, period_});
    kept_bytes_ += size;
  }

  // Waits by `wait` for all work of the device; then blocks that were freed before are not in use.
  template <class Wait>
  void wait_for_freed(const Wait& wait) {
    std::unique_lock lock(mutex_);
    const std::uint64_t next = ++period_;
    lock.unlock();
    wait();
    lock.lock();
    waited_ = std::max(waited_, next);
  }

  // Bytes that are kept and not in use.
  std::size_t kept_bytes() const {
    const std::scoped_lock lock(mutex_);
    return kept_bytes_;
  }

  void trim() {
    const std::scoped_lock lock(mutex_);
    give_back();
  }

 private:
  static constexpr std::size_t kMiB = std::size_t{1} << 20;
  static constexpr std::size_t kLargestKept = 256 * kMiB, kMostKept = 1024 * kMiB;
  static constexpr std::size_t kLeast = 512;
  static constexpr std::size_t kMayBeLarger = 4;  // a kept block, by this part of what is asked for

  // Eight sizes from one power of two to the next, so that at most an eighth is wasted. Blocks that
  // are not kept have their own size.
  static std::size_t block_size(std::size_t bytes) {
    if (bytes > kLargestKept) return bytes;
    const std::size_t step = std::max(kLeast, std::bit_floor(bytes) / 8);
    return (bytes + step - 1) / step * step;
  }

  void give_back() {
    for (const auto& [size, kept] : kept_) give_(kept.data);
    kept_.clear();
    kept_bytes_ = 0;
  }

  std::function<void*(std::size_t)> take_;
  std::function<void(void*)> give_;
  mutable std::mutex mutex_;
  struct Kept {
    void* data;
    std::uint64_t period;  // in which it was freed
  };
  std::multimap<std::size_t, Kept> kept_;
  std::unordered_map<void*, std::size_t> sizes_;  // of what is in use
  std::size_t kept_bytes_ = 0;
  std::uint64_t period_ = 0, waited_ = 0;  // blocks freed in a period below waited_ are not in use
};

}  // namespace spmmbench
