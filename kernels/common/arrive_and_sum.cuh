#pragma once
// Sums of which several warps have a part. Every warp writes its part to global memory and counts
// its arrival. The warp that arrives last adds up the parts and goes on with the sum; the others
// are done. No warp waits for another one, and one launch is enough.
//
// Counters and shared slots must be zero before the first launch. The last warp leaves them zero
// for the next launch. Instead of a warp, a group of 8 or 16 of its lanes may have a part.

#include <cstdint>

#include "ptx/atom.cuh"
#include "ptx/red.cuh"

namespace spmmbench {

// The lanes of this thread's group of kLanes, as a mask of its warp.
template <int kLanes>
__device__ unsigned lanes_of_group() {
  if constexpr (kLanes == 32) return 0xFFFFFFFFU;
  else return ((1U << kLanes) - 1U) << (threadIdx.x % 32 / kLanes * kLanes);
}

// Counts an arrival. True in the last of `parts` warps to call this, whose lanes then see all that
// the lanes of the other warps wrote before they called it. `lane`: of the warp, or of its group.
//
//   another warp                                    the last warp
//     all lanes   write the part
//     all lanes   __syncwarp: lane 0 sees it
//     lane 0      atom: releases it          --->     lane 0      atom: acquires it
//                                                     all lanes   __syncwarp: all see it
//                                                     all lanes   read the part
template <int kLanes = 32>
__device__ bool arrives_last(unsigned* arrivals, int parts, unsigned lane) {
  const unsigned group = lanes_of_group<kLanes>();
  const unsigned most = static_cast<unsigned>(parts) - 1U;
  __syncwarp(group);
  unsigned before = 0;
  if (lane == 0) before = ptx::atom_acq_rel_gpu_global_inc_u32(arrivals, most);
  const bool last = __shfl_sync(group, before, 0, kLanes) == most;
  __syncwarp(group);
  return last;
}

// True where all warps but this one have arrived, and then as if it had arrived last. Costs half as
// much, since nothing is released.
__device__ inline bool others_have_arrived(unsigned* arrivals, int parts, unsigned lane) {
  constexpr unsigned kWarp = 0xFFFFFFFFU;
  bool last = false;
  if (lane == 0) {
    last = ptx::ld_acquire_gpu_global_u32(arrivals) == static_cast<unsigned>(parts) - 1U;
    if (last) *arrivals = 0;
  }
  last = __any_sync(kWarp, last);
  __syncwarp();
  return last;
}

// Where the parts of a lane's sums lie in memory.
//   ordered   Every part has a slot. The last warp adds them in their order, whoever it is, so that
//             every launch gives the same bits.
//   else      All parts share a slot, zero between launches, and are added there as they come. The
//             last warp reads less, but the rounding varies from launch to launch.
struct PartialSums {
  float* own;  // this lane's first four sums in the slot of its part
  unsigned* arrivals;
  int parts;
  bool ordered = false;
  float* first = nullptr;        // ordered: the same in the slot of part 0
  std::int64_t slot_floats = 0;  // ordered: from slot to slot
  bool adds = true;              // not ordered: false where this lane's sums are of no column
};

// Adds up the parts. True in the warp that is last, whose `sums` then are those of all parts. In a
// slot, a lane's next four sums lie kStride floats after the four before.
template <int kStride, int kLanes = 32, int kCount>
__device__ bool arrive_and_sum(const PartialSums& partial, unsigned lane, float (&sums)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; i += 4) {
    const float4 four = make_float4(sums[i], sums[i + 1], sums[i + 2], sums[i + 3]);
    float* const to = partial.own + i / 4 * kStride;
    if (partial.ordered) __stcg(reinterpret_cast<float4*>(to), four);
    else if (partial.adds) ptx::red_global_add_v4_f32(to, four);
  }
  if (!arrives_last<kLanes>(partial.arrivals, partial.parts, lane)) return false;
#pragma unroll
  for (float& sum : sums) sum = 0;
  for (int part = 0; part < (partial.ordered ? partial.parts : 1); ++part) {
    float* const from = partial.ordered ? partial.first + part * partial.slot_floats : partial.own;
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      auto* const four = reinterpret_cast<float4*>(from + i / 4 * kStride);
      const float4 x = __ldcg(four);
      if (!partial.ordered) *four = make_float4(0, 0, 0, 0);
      sums[i] += x.x;
      sums[i + 1] += x.y;
      sums[i + 2] += x.z;
      sums[i + 3] += x.w;
    }
  }
  return true;
}

}  // namespace spmmbench
