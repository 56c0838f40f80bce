// How often a cache has to read rows of B that it has dropped, counted on the device.

#include "common/device_arrays.hpp"
#include "window/device_column_reuse.hpp"

#include <cuda_runtime.h>
#include <cub/block/block_scan.cuh>

#include <algorithm>

#include "gpu/cuda_check.hpp"
#include "gpu/told_to_host.hpp"
#include "window/column_reuse.hpp"

namespace spmmbench {
namespace {

constexpr int kReuseThreads = kMostChunkRows;  // each of a row of a chunk, then of its entries
constexpr int kBitsOfWord = 32;
constexpr int kMostOrders = 4;  // that are counted together

struct RowOrdersOnDevice {
  const std::int32_t* rows[kMostOrders];
};

struct ToldShares {
  double share[kMostOrders * kReuseStretches];
};

// The rows of a chunk, one behind the other.
struct ChunkRows {
  std::int64_t before[kReuseThreads];  // entries of the rows before
  std::int64_t begin[kReuseThreads];   // of the row in A, less `before`

  // Where an entry of the chunk lies in A.
  __device__ std::int64_t place_of(std::int64_t entry, int rows) const {
    int low = 0, high = rows;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (before[middle] <= entry) low = middle;
      else high = middle;
    }
    return begin[low] + entry;
  }
};

// A CTA for each stretch of each order. `seen`: a bit for each column, zero, for each CTA.
__global__ void __launch_bounds__(kReuseThreads)
    count_reuse(DeviceCsr a, RowOrdersOnDevice orders, ReuseRule rule, std::uint32_t* seen,
                std::int64_t words, ToldShares* told) {
  using Scan = cub::BlockScan<std::int64_t, kReuseThreads, cub::BLOCK_SCAN_WARP_SCANS>;
  __shared__ typename Scan::TempStorage scan;
  __shared__ ChunkRows chunk;
  __shared__ SeenColumns columns;
  __shared__ unsigned distinct;
  const int thread = static_cast<int>(threadIdx.x);
  const int part = static_cast<int>(blockIdx.y * kReuseStretches + blockIdx.x);
  const std::int32_t* const row_of = orders.rows[blockIdx.y];
  seen += part * words;
  if (thread == 0) {
    columns.begin();
    distinct = 0;
  }
  SeenColumns::Point now = {0, 0};
  for (std::int64_t first = start_of_stretch(static_cast<int>(blockIdx.x), a.rows);
       first < a.rows && now.distinct < rule.kept && now.entries < rule.entries;
       first += rule.chunk_rows) {
    const int rows = static_cast<int>(min(rule.chunk_rows, a.rows - first));
    std::int64_t begin = 0, length = 0, before = 0, entries = 0;
    if (thread < rows) {
      const std::int64_t row = row_of == nullptr ? first + thread : row_of[first + thread];
      begin = a.row_ptr[row];
      length = a.row_ptr[row + 1] - begin;
    }
    Scan(scan).ExclusiveSum(length, before, entries);
    chunk.before[thread] = before;
    chunk.begin[thread] = begin - before;
    __syncthreads();
    unsigned fresh = 0;
    for (std::int64_t entry = thread; entry < entries; entry += kReuseThreads) {
      const std::int32_t column = a.col_idx[chunk.place_of(entry, rows)];
      const std::uint32_t bit = 1U << (column % kBitsOfWord);
      fresh += (atomicOr(seen + column / kBitsOfWord, bit) & bit) == 0 ? 1 : 0;
    }
    if (fresh > 0) atomicAdd(&distinct, fresh);
    __syncthreads();
    now = {now.entries + entries, distinct};
    if (thread == 0) columns.add(rule, now);
    __syncthreads();  // before the next chunk is written
  }
  if (thread == 0) told->share[part] = columns.new_share(now);
}

}  // namespace

std::vector<double> new_column_shares(const DeviceCsr& a,
                                      const std::vector<const std::int32_t*>& row_orders,
                                      std::int64_t kept, Device& device) {
  std::vector<double> shares(row_orders.size(), 0.0);
  if (a.nnz == 0) return shares;
  const std::int64_t words = (a.cols + kBitsOfWord - 1) / kBitsOfWord;
  const ReuseRule rule = reuse_rule(a.rows, a.nnz, kept);
  const ToldToHost there(device);
  for (std::size_t first = 0; first < row_orders.size(); first += kMostOrders) {
    const auto count = std::min<std::size_t>(kMostOrders, row_orders.size() - first);
    RowOrdersOnDevice orders{};
    std::copy_n(row_orders.begin() + static_cast<std::ptrdiff_t>(first), count, orders.rows);
    const Buffer seen = device.allocate(count * kReuseStretches * static_cast<std::size_t>(words) *
                                        sizeof(std::uint32_t));
    device.fill_bytes(seen.data(), 0, seen.bytes());
    count_reuse<<<dim3(kReuseStretches, static_cast<unsigned>(count)), kReuseThreads, 0,
                  stream_of(device)>>>(a, orders, rule, seen.as<std::uint32_t>(), words,
                                       there.as<ToldShares>());
    SPMMBENCH_CUDA_LAUNCHED();
    device.synchronize();
    const auto& told = there.read<ToldShares>();
    for (std::size_t i = 0; i < count * kReuseStretches; ++i)
      shares[first + i / kReuseStretches] += told.share[i] / kReuseStretches;
  }
  return shares;
}

}  // namespace spmmbench
