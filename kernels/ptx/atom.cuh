#pragma once
// atom: read-modify-write of memory that returns what was there, and ld.acquire, which only reads
// (PTX ISA, "Parallel Synchronization and Communication Instructions: atom", "Data Movement and
// Conversion Instructions: ld").

namespace spmmbench::ptx {

// Adds one, or writes 0 where `most` is reached, and returns what was there before. Acquires what
// others have released at the same address, and releases what this thread has written or seen.
__device__ inline unsigned atom_acq_rel_gpu_global_inc_u32(unsigned* at, unsigned most) {
  unsigned before = 0;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(__cvta_generic_to_global(at)), "r"(most)
               : "memory");
  return before;
}

// Writes the greater of both, and returns what was there before. Releases what this thread has
// written or seen.
__device__ inline unsigned long long atom_release_gpu_global_max_u64(unsigned long long* at,
                                                                     unsigned long long value) {
  unsigned long long before = 0;
  asm volatile("atom.release.gpu.global.max.u64 %0, [%1], %2;"
               : "=l"(before)
               : "l"(__cvta_generic_to_global(at)), "l"(value)
               : "memory");
  return before;
}

// Adds. Releases what this thread has written or seen.
__device__ inline void red_release_gpu_global_add_u32(unsigned* at, unsigned value) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;"
               :
               : "l"(__cvta_generic_to_global(at)), "r"(value)
               : "memory");
}

// What lies there now. Acquires what others have released at the same address.
__device__ inline unsigned ld_acquire_gpu_global_u32(const unsigned* at) {
  unsigned now = 0;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
               : "=r"(now)
               : "l"(__cvta_generic_to_global(at))
               : "memory");
  return now;
}

}  // namespace spmmbench::ptx
