#pragma once
// Fire-and-forget addition to global memory: the sum is formed in the L2 cache and nothing returns.

namespace spmmbench {

// to[0..4) += x, each element atomically; `to` is 16-byte aligned.
__device__ inline void reduce_add(float* to, float4 x) {
#if __CUDA_ARCH__ >= 900
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(
                   __cvta_generic_to_global(to)),
               "f"(x.x), "f"(x.y), "f"(x.z), "f"(x.w)
               : "memory");
#else
  atomicAdd(to, x.x);
  atomicAdd(to + 1, x.y);
  atomicAdd(to + 2, x.z);
  atomicAdd(to + 3, x.w);
#endif
}

}  // namespace spmmbench
