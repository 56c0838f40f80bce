#pragma once
// The bytes of B or C of any size that can be asked for.

#include <algorithm>
#include <cstddef>

#include "spmmbench/device.hpp"

namespace spmmbench {

// More than any memory holds, and sums of a few of it fit 64 bits.
constexpr std::size_t kBeyondMemory = std::size_t{1} << 60;

// view.bytes(), or kBeyondMemory if it would be more: view.bytes() wraps around.
inline std::size_t saturated_bytes(const DenseView& view) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(view.lines(), view.ld, &bytes) ||
      __builtin_mul_overflow(bytes, bytes_of(view.type), &bytes))
    return kBeyondMemory;
  return std::min(bytes, kBeyondMemory);
}

}  // namespace spmmbench
