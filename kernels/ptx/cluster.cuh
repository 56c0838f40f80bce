#pragma once
// Clusters of CTAs and their distributed shared memory (PTX ISA, "Cluster of Cooperative Thread
// Arrays", "barrier.cluster", "mapa", "st.async", "%cluster_nctarank"). Addresses are those of the
// shared memory of the whole cluster, 32 bits, which take fewer instructions than the generic ones
// of cuda::ptx.

#include <cuda_runtime.h>

#include <cstdint>

namespace spmmbench::ptx {

// All threads of all CTAs of the cluster call both, in this order. Of what was written before the
// first, the others see after the second only what a fence has released: barriers behind
// fence_mbarrier_init.
__device__ inline void cluster_arrive_relaxed() { __cluster_barrier_arrive_relaxed(); }
__device__ inline void cluster_wait() { __cluster_barrier_wait(); }

// CTAs of the cluster.
__device__ inline unsigned cluster_size() {
  unsigned size;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  return size;
}

// The same place in the shared memory of CTA `rank` of the cluster, which must have started and not
// ended.
__device__ inline std::uint32_t map_to_cta(std::uint32_t place, unsigned rank) {
  std::uint32_t there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(place), "r"(rank));
  return there;
}

// Writes to a CTA of the cluster, whose barrier at `barrier` counts the bytes when they are there.
__device__ inline void st_async(std::uint32_t to, const float (&x)[2], std::uint32_t barrier) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::
          "r"(to),
      "f"(x[0]), "f"(x[1]), "r"(barrier)
      : "memory");
}
__device__ inline void st_async(std::uint32_t to, const float (&x)[4], std::uint32_t barrier) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, "
      "[%5];" ::"r"(to),
      "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]), "r"(barrier)
      : "memory");
}

}  // namespace spmmbench::ptx
