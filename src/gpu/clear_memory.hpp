#pragma once
// Memory that kernels leave as they found it: zero. It goes to later plans, which need not clear
// it.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "spmmbench/device.hpp"

namespace spmmbench {

// Of one device, and destroyed before it.
class ClearMemory {
 public:
  // At least `bytes`, and not much more; null where no such memory is kept.
  Buffer take(std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    const auto found = kept_.lower_bound(bytes);
    if (found == kept_.end() || found->first > kMayBeLarger * size_for(bytes)) return {};
    Buffer out = std::move(found->second);
    kept_.erase(found);
    return out;
  }

  // Frees it where so much is kept already.
  void keep(Buffer memory) noexcept {
    const std::scoped_lock lock(mutex_);
    if (memory.bytes() > kLargest || kept_.size() >= kMost) return;
    try {
      const std::size_t bytes = memory.bytes();
      kept_.emplace(bytes, std::move(memory));
    } catch (const std::bad_alloc&) {
    }
  }

  // What to allocate, so that later plans that want about as much can have it.
  static std::size_t size_for(std::size_t bytes) {
    const std::size_t step = std::max<std::size_t>(kLeastStep, std::bit_floor(bytes) / 8);
    return (bytes + step - 1) / step * step;
  }

 private:
  static constexpr std::size_t kLeastStep = 512;  // bytes
  // What is kept: at most 16 blocks of 4 MiB. csr_merge wants 1 MiB for a million nonzeros at N =
  // 256.
  static constexpr std::size_t kLargest = std::size_t{1} << 22;
  static constexpr std::size_t kMost = 16;
  static constexpr std::size_t kMayBeLarger = 2;  // times what is wanted

  std::mutex mutex_;
  std::multimap<std::size_t, Buffer> kept_;
};

struct MaybeClear {
  Buffer memory;
  bool is_clear = false;
};

// Memory of at least `bytes`, which is clear if it was kept and its last launch comes before all
// that follows.
MaybeClear allocate_maybe_clear(Device& device, std::size_t bytes);
// Keeps memory that is clear once the launches on the legacy default stream are done.
void keep_clear(Device& device, Buffer memory) noexcept;

}  // namespace spmmbench
