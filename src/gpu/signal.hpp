#pragma once
// A wait for a kernel that has told the host all that it knows (gpu/told_to_host.hpp), while those
// enqueued behind it may still run. A wait for the stream takes some 3 us more.

#include <cuda_runtime.h>

#include <atomic>
#include <cstdint>

#include "gpu/cuda_check.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {

// A word in memory of the host: 0 until the kernel gives the signal (gpu/signal.cuh).
struct Signal {
  volatile std::uint32_t* at = nullptr;
};

// For a kernel that has not been enqueued yet.
inline Signal make_signal(std::uint32_t* at) {
  *at = 0;
  return {at};
}

// The kernel has been enqueued on the stream of the device.
inline void wait_for(const Signal& signal, const Device& device) {
  constexpr int kLooks = 4096;  // from one question to the stream to the next
  for (int looks = 1; *signal.at == 0; ++looks) {
    if (looks % kLooks != 0) continue;
    const cudaError_t state = cudaStreamQuery(static_cast<cudaStream_t>(device.stream().handle));
    if (state == cudaErrorNotReady) continue;
    SPMMBENCH_CUDA(state);
    if (*signal.at == 0) throw DeviceError("a kernel has told nothing", false);
  }
  std::atomic_thread_fence(std::memory_order_acquire);
}

}  // namespace spmmbench
