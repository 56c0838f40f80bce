#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "spmmbench/device.hpp"
#include "spmmbench/kernel.hpp"

namespace spmmbench {

// A device that preparation runs on, made when it is first needed and never destroyed, since what
// was prepared may live until the program ends. One preparation at a time.
struct SharedDevice {
  std::unique_ptr<Device> device;
  std::mutex mutex;
  bool prepares_in_order = false;              // under way: nobody waits for it
  std::atomic<bool> has_other_streams{false};  // than the legacy default one, in launches so far
};

// One preparation.
class Turn {
 public:
  Turn(SharedDevice& shared, bool in_order) : shared_(shared), lock_(shared.mutex) {
    shared.prepares_in_order = in_order;
  }
  ~Turn() { end(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  void end() {
    if (!lock_) return;
    shared_.prepares_in_order = false;
    lock_.unlock();
  }

 private:
  SharedDevice& shared_;
  std::unique_lock<std::mutex> lock_;
};

// The shared device of the current GPU, or of the host. Throws Unsupported if there is no GPU.
SharedDevice& shared_device(DeviceKind kind);

// Which the device's own stream is ordered with. 1 is cudaStreamLegacy.
bool is_default(const void* stream);

}  // namespace spmmbench
