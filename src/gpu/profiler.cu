// The bracket around the one launch that `profile` shows to Nsight: cudaProfilerStart/Stop for
// capture ranges, NVTX ranges for filters by name and for readers.

#include <cuda_profiler_api.h>
#include <nvtx3/nvToolsExt.h>

#include "gpu/backend.hpp"
#include "gpu/cuda_check.hpp"

namespace spmmbench {

void profiler_start(const std::string& range, const std::string& inner_range) {
  SPMMBENCH_CUDA(cudaDeviceSynchronize());
  SPMMBENCH_CUDA(cudaProfilerStart());
  nvtxRangePushA(range.c_str());
  nvtxRangePushA(inner_range.c_str());
}

void profiler_stop() {
  SPMMBENCH_CUDA(cudaDeviceSynchronize());
  nvtxRangePop();
  nvtxRangePop();
  SPMMBENCH_CUDA(cudaProfilerStop());
}

}  // namespace spmmbench
