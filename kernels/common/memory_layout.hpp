#pragma once
// Arrays that share an allocation. For a small matrix an allocation takes as long as a kernel.

#include <cstddef>

#include "spmmbench/device.hpp"

namespace spmmbench {

// Each array is aligned like one of its own.
class MemoryLayout {
 public:
  // Where the next array begins.
  std::size_t add(std::size_t bytes) {
    const std::size_t at = bytes_;
    bytes_ += (bytes + 255) / 256 * 256;
    return at;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

template <class T>
T* array_at(const Buffer& buffer, std::size_t at) {
  return reinterpret_cast<T*>(buffer.as<unsigned char>() + at);
}

}  // namespace spmmbench
