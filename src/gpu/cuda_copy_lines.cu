#include <cuda_runtime.h>

#include <algorithm>
#include <bit>

#include "gpu/copy_lines.hpp"
#include "gpu/launch_dependent.cuh"

namespace spmmbench {
namespace {

constexpr int kCopyThreads = 256;
constexpr int kHeldWords = 4;  // words of a thread that are on their way

// This many neighbouring threads copy a line, a word each at a time; `lanes` divides a warp.
__global__ void __launch_bounds__(kCopyThreads)
    copy_lines_kernel(const uint4* from, const std::int32_t* lines, std::int64_t count,
                      std::int64_t words, int lanes, uint4* to) {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
  const std::int64_t first =
      (static_cast<std::int64_t>(blockIdx.x) * kCopyThreads + threadIdx.x) / lanes;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kCopyThreads / lanes;
  for (std::int64_t word = threadIdx.x % lanes; word < words; word += lanes)
    for (std::int64_t i = first; i < count; i += kHeldWords * step) {
      uint4 held[kHeldWords];
#pragma unroll
      for (int at = 0; at < kHeldWords; ++at)
        if (i + at * step < count) held[at] = from[lines[i + at * step] * words + word];
#pragma unroll
      for (int at = 0; at < kHeldWords; ++at)
        if (i + at * step < count) to[(i + at * step) * words + word] = held[at];
    }
}

}  // namespace

void cuda_copy_lines(const void* from, const std::int32_t* lines, std::int64_t count,
                     std::size_t line_bytes, void* to, CopyBeside beside, Stream stream) {
  if (count == 0 || line_bytes == 0) return;
  constexpr std::int64_t kWarp = 32;
  constexpr std::int64_t kFill = 2048;  // blocks that fill a GPU
  // 2 MiB on its way: between two H200 32, 64 and 132 blocks bring 146, 268 and 323 GB/s.
  constexpr std::int64_t kFew = 132;
  const auto words = static_cast<std::int64_t>(line_bytes / sizeof(uint4));
  const auto lanes =
      static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::min(words, kWarp))));
  const std::int64_t blocks = std::min((count * lanes + kCopyThreads - 1) / kCopyThreads,
                                       beside == CopyBeside::nothing ? kFill : kFew);
  launch_dependent(copy_lines_kernel, static_cast<unsigned>(blocks), kCopyThreads, stream,
                   static_cast<const uint4*>(from), lines, count, words, static_cast<int>(lanes),
                   static_cast<uint4*>(to));
}

}  // namespace spmmbench
