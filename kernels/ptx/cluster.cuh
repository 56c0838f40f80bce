#pragma once
// Clusters of CTAs and their distributed shared memory (PTX ISA, "Cluster of Cooperative Thread
// Arrays", "barrier.cluster", "mapa").

#include <cuda_runtime.h>

namespace spmmbench::ptx {

// All threads of all CTAs of the cluster call both, in this order. What was written before the
// first is visible after the second, in the shared memory of the other CTAs as well.
__device__ inline void cluster_arrive() { __cluster_barrier_arrive(); }
__device__ inline void cluster_wait() { __cluster_barrier_wait(); }

// The same place in the shared memory of CTA `rank` of the cluster, which must have started and not
// ended.
template <class T>
__device__ T* map_to_cta(T* place, unsigned rank) {
  return static_cast<T*>(__cluster_map_shared_rank(place, rank));
}

}  // namespace spmmbench::ptx
