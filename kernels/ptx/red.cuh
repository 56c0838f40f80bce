#pragma once
// red: additions to memory that return nothing, formed in the L2 cache (PTX ISA, "Parallel
// Synchronization and Communication Instructions: red").

namespace spmmbench::ptx {

// to[0..4) += x, each element atomically; `to` is 16-byte aligned.
__device__ inline void red_global_add_v4_f32(float* to, float4 x) {
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

}  // namespace spmmbench::ptx
