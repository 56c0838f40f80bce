#pragma once
// CUDA's own wrappers (mbarrier, bulk copies, fences) beside those of this folder, which are what
// cuda::ptx lacks: kernels call both as ptx::NAME.

#include <cuda/ptx>

namespace spmmbench::ptx {

using namespace cuda::ptx;

}  // namespace spmmbench::ptx
