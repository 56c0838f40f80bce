#pragma once
// What planted kernels of the GPU share.

#include <cstdint>
#include <cuda/std/chrono>

#include "spmmbench/device.hpp"

namespace spmmbench {

inline __device__ std::int64_t now_ns() {
  return cuda::std::chrono::duration_cast<cuda::std::chrono::nanoseconds>(
             cuda::std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// Of an element in the memory of `view`.
inline __device__ std::int64_t index_of(const DenseView& view, std::int64_t i, std::int64_t j) {
  return view.layout == Layout::row_major ? i * view.ld + j : j * view.ld + i;
}

}  // namespace spmmbench
