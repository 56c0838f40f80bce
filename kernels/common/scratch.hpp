#pragma once
// Temporary device memory for code that has no Device: `supports` counts a matrix that lies on the
// current GPU. It works in the order of the legacy default stream, which a Device's stream follows.

#include <cuda_runtime.h>

#include <cstddef>

#include "gpu/cuda_check.hpp"

namespace spmmbench {

class Scratch {
 public:
  // All zero.
  explicit Scratch(std::size_t bytes) {
    SPMMBENCH_CUDA(cudaMallocAsync(&data_, bytes, nullptr));
    SPMMBENCH_CUDA(cudaMemsetAsync(data_, 0, bytes, nullptr));
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { SPMMBENCH_CUDA_NOEXCEPT(cudaFreeAsync(data_, nullptr)); }

  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  // What lies at the beginning, after what was enqueued.
  template <class T>
  T read() const {
    T out{};
    SPMMBENCH_CUDA(cudaMemcpy(&out, data_, sizeof out, cudaMemcpyDeviceToHost));
    return out;
  }

 private:
  void* data_ = nullptr;
};

}  // namespace spmmbench
