#include "spin.hpp"

#include "gpu/cuda_check.hpp"

namespace spmmbench::test {
namespace {

__device__ std::uint64_t now_ns() {
  std::uint64_t ns = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
  return ns;
}

__global__ void spin_kernel(std::uint64_t ns) {
  const std::uint64_t begin = now_ns();
  while (now_ns() - begin < ns) {
  }
}

__global__ void write_time_kernel(std::uint64_t* at) { *at = now_ns(); }

}  // namespace

void fill_gpu(Stream stream) {
  constexpr int kBlocks = 20000, kThreads = 1024;  // a multiprocessor holds two of them
  constexpr std::uint64_t kEachNs = 20000;
  spin_kernel<<<kBlocks, kThreads, 0, static_cast<cudaStream_t>(stream.handle)>>>(kEachNs);
  SPMMBENCH_CUDA_LAUNCHED();
}

void write_time(std::uint64_t* at, Stream stream) {
  write_time_kernel<<<1, 1, 0, static_cast<cudaStream_t>(stream.handle)>>>(at);
  SPMMBENCH_CUDA_LAUNCHED();
}

}  // namespace spmmbench::test
