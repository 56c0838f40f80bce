#pragma once

#include "ptx/atom.cuh"

namespace spmmbench {

// All CTAs of a grid wait for each other. They all are on the device at the same time: they are no
// more than fit, and nothing that follows begins before they have.
class GridBarrier {
 public:
  // `arrived`: 0 before.
  explicit __device__ GridBarrier(unsigned* arrived) : arrived_(arrived) {}
  __device__ void sync() {
    __syncthreads();
    if (threadIdx.x == 0) {
      expected_ += gridDim.x;
      ptx::red_release_gpu_global_add_u32(arrived_, 1);
      while (ptx::ld_acquire_gpu_global_u32(arrived_) < expected_) {
      }
    }
    __syncthreads();
  }

 private:
  unsigned* arrived_;
  unsigned expected_ = 0;
};

}  // namespace spmmbench
