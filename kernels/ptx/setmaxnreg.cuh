#pragma once
// setmaxnreg: registers move between the warpgroups of a CTA (PTX ISA, "Miscellaneous
// Instructions"). Every warp of the warpgroup must execute it, and the kernel needs
// __launch_bounds__(threads, CTAs). kRegisters: per thread, a multiple of 8, 24 to 256.

#include "ptx/sm90a.cuh"

namespace spmmbench::ptx {

template <int kRegisters>
__device__ inline void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ inline void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

}  // namespace spmmbench::ptx
