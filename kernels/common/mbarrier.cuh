#pragma once
// The mbarrier idioms of a producer-consumer ring.

#include <cstdint>

#include "ptx/cuda_ptx.cuh"

namespace spmmbench::mbarrier {

// Waits until the phase of that parity has completed. A fresh barrier counts as having completed
// parity 1.
__device__ inline void wait(std::uint64_t* barrier, std::uint32_t parity) {
  while (!ptx::mbarrier_try_wait_parity(barrier, parity)) {
  }
}
// Position in a ring of `stages` barriers.
struct Cursor {
  int stage = 0;
  std::uint32_t parity = 0;

  __device__ void advance(int stages) {
    if (++stage == stages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

}  // namespace spmmbench::mbarrier
