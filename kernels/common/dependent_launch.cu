#include "common/dependent_launch.hpp"

#include "ptx/griddepcontrol.cuh"

namespace spmmbench {
namespace {

__global__ void waits() { ptx::griddepcontrol_wait(); }

}  // namespace

bool kernels_wait() {
  constexpr int kFirstThatWaits = 90;  // version of PTX's virtual architecture
  cudaFuncAttributes attributes{};
  SPMMBENCH_CUDA(cudaFuncGetAttributes(&attributes, waits));
  return attributes.ptxVersion >= kFirstThatWaits;
}

}  // namespace spmmbench
