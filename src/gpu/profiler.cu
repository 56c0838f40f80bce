// The bracket around the one launch that `profile` shows to Nsight: cudaProfilerStart/Stop for
// capture ranges, an NVTX range for filters by name.

#include <cuda_profiler_api.h>
#include <nvtx3/nvToolsExt.h>

#include "gpu/backend.hpp"
#include "gpu/cuda_check.hpp"

namespace spmmbench {

void profiler_start(const std::string& range_name) {
  SPMMBENCH_CUDA(cudaDeviceSynchronize());
  SPMMBENCH_CUDA(cudaProfilerStart());
  nvtxRangePushA(range_name.c_str());
}

void profiler_stop() {
  SPMMBENCH_CUDA(cudaDeviceSynchronize());
  nvtxRangePop();
  SPMMBENCH_CUDA(cudaProfilerStop());
}

}  // namespace spmmbench
