#pragma once
// The mbarrier idioms of a producer-consumer ring on top of cuda::ptx.

#include <cstdint>
#include <cuda/ptx>

namespace spmmbench::mbarrier {

// Waits until the phase of that parity has completed. A fresh barrier counts as having completed
// parity 1.
__device__ inline void wait(std::uint64_t* barrier, std::uint32_t parity) {
  while (!cuda::ptx::mbarrier_try_wait_parity(barrier, parity)) {
  }
}
// The same for a barrier on which threads of other blocks of the cluster arrive.
__device__ inline void wait_cluster(std::uint64_t* barrier, std::uint32_t parity) {
  while (!cuda::ptx::mbarrier_try_wait_parity(cuda::ptx::sem_acquire, cuda::ptx::scope_cluster,
                                              barrier, parity)) {
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
