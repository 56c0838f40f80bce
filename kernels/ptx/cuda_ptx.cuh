#pragma once
// CUDA's own wrappers (mbarrier, bulk copies, fences) beside those of this folder, which are what
// cuda::ptx lacks: kernels call both as ptx::NAME.

#include <cuda/ptx>

namespace spmmbench::ptx {

using namespace cuda::ptx;

// How an arrival that need not order memory is made: before CUDA 12.8 a release is all there is.
#if CUDART_VERSION >= 12080
using weakest_arrival_t = sem_relaxed_t;
#else
using weakest_arrival_t = sem_release_t;
#endif

}  // namespace spmmbench::ptx
