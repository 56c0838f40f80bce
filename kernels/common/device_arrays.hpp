#pragma once
// What builds of formats on a device need of it.

#include <cuda_runtime.h>

#include <vector>

#include "spmmbench/device.hpp"

namespace spmmbench {

inline cudaStream_t stream_of(const Device& device) {
  return static_cast<cudaStream_t>(device.stream().handle);
}

// A copy on the host; waits for the stream.
template <class T>
std::vector<T> downloaded(const Buffer& buffer, Device& device) {
  std::vector<T> out(buffer.bytes() / sizeof(T));
  device.download(out.data(), buffer.data(), buffer.bytes());
  return out;
}

}  // namespace spmmbench
