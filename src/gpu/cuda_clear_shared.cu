// Overwrites the shared memory of all multiprocessors of a CUDA device, which keeps what the last
// kernel left there.

#include <cuda_runtime.h>

#include <map>

#include "gpu/backend.hpp"
#include "gpu/cuda_check.hpp"

namespace spmmbench {
namespace {

constexpr int kClearingThreads = 1024;

__global__ void __launch_bounds__(kClearingThreads) clear_shared_kernel(int words) {
  extern __shared__ volatile unsigned cleared_words[];  // volatile: nobody reads them
  for (int i = static_cast<int>(threadIdx.x); i < words; i += kClearingThreads)
    cleared_words[i] = 0;
}

}  // namespace

void cuda_clear_shared(Device& device) {
  thread_local std::map<int, int> known;  // by device: bytes of a block that has all of one
  int& bytes = known[device.info().index];
  if (bytes == 0) {
    int current = 0;
    SPMMBENCH_CUDA(cudaGetDevice(&current));
    SPMMBENCH_CUDA(
        cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, current));
    SPMMBENCH_CUDA(cudaFuncSetAttribute(clear_shared_kernel,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  }
  clear_shared_kernel<<<static_cast<unsigned>(device.info().sm_count), kClearingThreads,
                        static_cast<std::size_t>(bytes),
                        static_cast<cudaStream_t>(device.stream().handle)>>>(
      bytes / static_cast<int>(sizeof(unsigned)));
  SPMMBENCH_CUDA_LAUNCHED();
}

}  // namespace spmmbench
