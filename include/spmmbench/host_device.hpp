#pragma once
// Marks what both the host's and the GPU's compiler must be able to call.

#if defined(__CUDACC__)
#define SPMMBENCH_HOST_DEVICE __host__ __device__
#else
#define SPMMBENCH_HOST_DEVICE
#endif
