// Counts the different sectors that samples of rows gather: each sample has a bit for every sector
// of B.

#include "jagged_slices/device_sectors.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <bit>

#include "gpu/cuda_check.hpp"
#include "jagged_slices/gathered_sectors.hpp"

namespace spmmbench::jagged {
namespace {

constexpr int kCountThreads = 256;
constexpr int kSampleCtas = 8;  // that share the rows of a sample

struct SectorCounts {
  unsigned long long sectors, nonzeros;
};

// `words`: of 32 bits, for each sample.
__global__ void __launch_bounds__(kCountThreads)
    count_sectors(DeviceCsr a, const std::int32_t* row_order, int shift, std::int64_t words,
                  unsigned* bits, SectorCounts* out) {
  const std::int64_t blocks = (a.rows + kSectorBlock - 1) / kSectorBlock;
  const std::int64_t first = blocks * blockIdx.x / gridDim.x * kSectorBlock;
  const std::int64_t end = min(first + kSectorBlock, a.rows);
  unsigned* const seen = bits + words * blockIdx.x;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  constexpr int kWarps = kCountThreads / 32;
  SectorCounts own{};
  for (std::int64_t place = first + blockIdx.y * kWarps + threadIdx.x / 32; place < end;
       place += kSampleCtas * kWarps) {
    const std::int64_t row = row_order == nullptr ? place : row_order[place];
    const std::int64_t begin = a.row_ptr[row], row_end = a.row_ptr[row + 1];
    if (lane == 0) own.nonzeros += row_end - begin;
    for (std::int64_t e = begin + lane; e < row_end; e += 32) {
      const int sector = a.col_idx[e] >> shift;
      const unsigned bit = 1U << (sector % 32);
      unsigned* const word = seen + sector / 32;
      if ((__ldcg(word) & bit) == 0 && (atomicOr(word, bit) & bit) == 0) ++own.sectors;
    }
  }
  for (int lanes = 16; lanes > 0; lanes /= 2)
    own.sectors += __shfl_down_sync(0xFFFFFFFFU, own.sectors, lanes);
  if (lane != 0) return;
  atomicAdd(&out->sectors, own.sectors);
  atomicAdd(&out->nonzeros, own.nonzeros);
}

}  // namespace

double gathered_sector_share(const DeviceCsr& a, const std::int32_t* row_order,
                             std::int64_t rows_of_sector, Device& device) {
  if (a.nnz == 0) return 0;
  const int shift = std::countr_zero(static_cast<std::uint64_t>(rows_of_sector));
  const std::int64_t blocks = (a.rows + kSectorBlock - 1) / kSectorBlock;
  const std::int64_t samples = std::min(blocks, kMostSectorBlocks);
  const std::int64_t words = (a.cols >> shift) / 32 + 1;
  const Buffer counts = device.allocate(sizeof(SectorCounts));
  const Buffer bits = device.allocate(words * samples * sizeof(unsigned));
  device.fill_bytes(counts.data(), 0, counts.bytes());
  device.fill_bytes(bits.data(), 0, bits.bytes());
  count_sectors<<<dim3(static_cast<unsigned>(samples), kSampleCtas), kCountThreads, 0,
                  static_cast<cudaStream_t>(device.stream().handle)>>>(
      a, row_order, shift, words, bits.as<unsigned>(), counts.as<SectorCounts>());
  SPMMBENCH_CUDA_LAUNCHED();
  SectorCounts found{};
  device.download(&found, counts.data(), sizeof found);
  return found.nonzeros == 0
             ? 0
             : static_cast<double>(found.sectors) / static_cast<double>(found.nonzeros);
}

}  // namespace spmmbench::jagged
