#include "common/dependent_launch.hpp"

#include <map>
#include <mutex>

#include "ptx/griddepcontrol.cuh"

namespace spmmbench {
namespace {

__global__ void waits() { ptx::griddepcontrol_wait(); }

}  // namespace

bool kernels_wait() {
  static std::mutex mutex;
  static std::map<int, bool> known;  // by device
  int device = 0;
  SPMMBENCH_CUDA(cudaGetDevice(&device));
  const std::scoped_lock lock(mutex);
  const auto [entry, is_new] = known.try_emplace(device);
  if (!is_new) return entry->second;
  constexpr int kFirstThatWaits = 90;  // version of PTX's virtual architecture
  cudaFuncAttributes attributes{};
  const cudaError_t error = cudaFuncGetAttributes(&attributes, waits);
  if (error != cudaSuccess) known.erase(entry);
  SPMMBENCH_CUDA(error);
  return entry->second = attributes.ptxVersion >= kFirstThatWaits;
}

}  // namespace spmmbench
