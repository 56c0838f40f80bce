#pragma once
// Handles of a vendor's library, one for each device. They live as long as the process: creating
// one takes longer than most products.

#include <map>
#include <mutex>

#include "spmmbench/device.hpp"

namespace spmmbench {

template <class Handle>
class DeviceHandles {
 public:
  // Whoever sets the stream or the workspace of `handle` holds `mutex` until the call that they are
  // for has returned: plans on other threads use the same handle.
  struct Shared {
    Handle handle{};
    std::mutex mutex;
  };

  // The handle of the device. `create(handle)` makes it where there is none yet.
  template <class Create>
  Shared& of(const Device& device, const Create& create) {
    const std::scoped_lock lock(mutex_);
    const auto [at, is_new] = by_device_.try_emplace(device.info().index);
    if (!is_new) return at->second;
    try {
      create(at->second.handle);
    } catch (...) {
      by_device_.erase(at);
      throw;
    }
    return at->second;
  }

 private:
  std::mutex mutex_;
  std::map<int, Shared> by_device_;
};

}  // namespace spmmbench
