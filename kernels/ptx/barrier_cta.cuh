#pragma once
// barrier.cta: numbered barriers of a CTA (PTX ISA, "Parallel Synchronization and Communication
// Instructions: barrier"). All threads of a warp call them together.

namespace spmmbench::ptx {

// Arrives at barrier `id` and goes on; `threads`: those that arrive and those that wait, together.
__device__ inline void barrier_cta_arrive(int id, int threads) {
  asm volatile("barrier.cta.arrive.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ inline void barrier_cta_sync(int id, int threads) {
  asm volatile("barrier.cta.sync.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

}  // namespace spmmbench::ptx
