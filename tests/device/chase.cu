#include "chase.hpp"

#include "gpu/cuda_check.hpp"

namespace spmmbench::test {
namespace {

__global__ void chase_kernel(const std::uint32_t* next, int steps, std::uint32_t* end) {
  std::uint32_t line = 0;
  // Not through L1, which no flush reaches.
  for (int i = 0; i < steps; ++i) line = __ldcg(next + line * kLineWords);
  *end = line;
}

}  // namespace

void chase(const std::uint32_t* next, int steps, std::uint32_t* end, Stream stream) {
  chase_kernel<<<1, 1, 0, static_cast<cudaStream_t>(stream.handle)>>>(next, steps, end);
  SPMMBENCH_CUDA_LAUNCHED();
}

}  // namespace spmmbench::test
