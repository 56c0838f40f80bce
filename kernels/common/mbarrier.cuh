#pragma once
// Barriers of rings in shared memory (common/hopper_ring.cuh, common/bulk_ring.cuh): copies fill
// their stages ahead of the warps that read them. Every stage has a barrier `full`, on which its
// copies arrive, and where producers are other threads than the readers, a barrier `empty`, on
// which the readers arrive when they are done with the stage.
//
// The rings of window/multiply.cuh and esmm/ have no barriers: their readers make the copies
// themselves, by cp.async, and wait for groups of them.

#include <cstdint>

#include "ptx/cuda_ptx.cuh"

namespace spmmbench::mbarrier {

// This many barriers, each with the number of arrivals that ends a phase. One thread calls this;
// ptx::fence_mbarrier_init and a barrier of all threads must follow.
__device__ inline void init(std::uint64_t* barriers, int count, std::uint32_t arrivals) {
  for (int i = 0; i < count; ++i) ptx::mbarrier_init(barriers + i, arrivals);
}

// Waits until the phase of that parity has completed. A fresh barrier counts as having completed
// parity 1.
__device__ inline void wait(std::uint64_t* barrier, std::uint32_t parity) {
  while (!ptx::mbarrier_try_wait_parity(barrier, parity)) {
  }
}

// Arrives, and has the phase wait for this many bytes of asynchronous copies.
__device__ inline void arrive_expect(std::uint64_t* barrier, std::uint32_t bytes) {
  ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, barrier,
                                 bytes);
}

// A stage of a ring, and the parity of the phase that fills it.
struct Cursor {
  int stage = 0;
  std::uint32_t parity = 0;

  __device__ void advance(int stages) {
    if (++stage == stages) {
      stage = 0;
      parity ^= 1;
    }
  }
  // For a reader: until the stage is filled.
  __device__ void wait_full(std::uint64_t* full) const { wait(full + stage, parity); }
  // For a producer: until the readers of the previous phase are done. At first every stage is
  // empty.
  __device__ void wait_empty(std::uint64_t* empty) const { wait(empty + stage, parity ^ 1); }
  // For a thread whose cp.async copies into the stage have ended: makes them visible to wgmma,
  // which reads through the async proxy, and arrives.
  __device__ void publish(std::uint64_t* full) const {
    ptx::fence_proxy_async(ptx::space_shared);
    ptx::mbarrier_arrive(full + stage);
  }
};

}  // namespace spmmbench::mbarrier
