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
// Nonzeros of a row from which all CTAs of its sample share it: a warp takes about 1 us for 32
// (H200).
constexpr std::int64_t kLongRow = 1024;

struct SectorCounts {
  unsigned long long sectors, nonzeros;
};

// The bits of a sample for the sectors of B that it gathers.
class SeenSectors {
 public:
  __device__ SeenSectors(const DeviceCsr& a, unsigned* bits, int shift)
      : a_(a), bits_(bits), shift_(shift) {}
  // How many sectors were not seen before, of every `step`th entry from `first` on.
  __device__ int add(std::int64_t first, std::int64_t end, int step) {
    int added = 0;
    for (std::int64_t e = first; e < end; e += step) {
      const int sector = a_.col_idx[e] >> shift_;
      const unsigned bit = 1U << (sector % 32);
      unsigned* const word = bits_ + sector / 32;
      if ((__ldcg(word) & bit) == 0 && (atomicOr(word, bit) & bit) == 0) ++added;
    }
    return added;
  }

 private:
  const DeviceCsr& a_;
  unsigned* bits_;
  int shift_;
};

// `words`: of 32 bits, for each sample.
__global__ void __launch_bounds__(kCountThreads)
    count_sectors(DeviceCsr a, const std::int32_t* row_order, int shift, std::int64_t words,
                  unsigned* bits, SectorCounts* out) {
  const std::int64_t blocks = (a.rows + kSectorBlock - 1) / kSectorBlock;
  const std::int64_t first = blocks * blockIdx.x / gridDim.x * kSectorBlock;
  const std::int64_t end = min(first + kSectorBlock, a.rows);
  SeenSectors seen(a, bits + words * blockIdx.x, shift);
  const auto row_at = [&](std::int64_t place) {
    return row_order == nullptr ? place : row_order[place];
  };
  __shared__ std::int64_t long_rows[kSectorBlock];
  __shared__ int long_count;
  if (threadIdx.x == 0) long_count = 0;
  __syncthreads();
  for (std::int64_t place = first + threadIdx.x; place < end; place += kCountThreads) {
    const std::int64_t row = row_at(place);
    if (a.row_ptr[row + 1] - a.row_ptr[row] > kLongRow) long_rows[atomicAdd(&long_count, 1)] = row;
  }
  __syncthreads();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  constexpr int kWarps = kCountThreads / 32;
  SectorCounts own{};
  for (int i = 0; i < long_count; ++i) {
    const std::int64_t begin = a.row_ptr[long_rows[i]], row_end = a.row_ptr[long_rows[i] + 1];
    const int thread = static_cast<int>(blockIdx.y) * kCountThreads + static_cast<int>(threadIdx.x);
    if (thread == 0) own.nonzeros += row_end - begin;
    own.sectors += seen.add(begin + thread, row_end, kSampleCtas * kCountThreads);
  }
  for (std::int64_t place = first + blockIdx.y * kWarps + threadIdx.x / 32; place < end;
       place += kSampleCtas * kWarps) {
    const std::int64_t row = row_at(place);
    const std::int64_t begin = a.row_ptr[row], row_end = a.row_ptr[row + 1];
    if (row_end - begin > kLongRow) continue;
    if (lane == 0) own.nonzeros += row_end - begin;
    own.sectors += seen.add(begin + lane, row_end, 32);
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
