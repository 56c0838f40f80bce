// Rows cut into segments on the device, in the order of cut_rows: every row belongs to one of four
// kinds, and a scan over the rows says where the segments of each begin among those of their kind.

#include <cuda_runtime.h>

#include <algorithm>
#include <cub/block/block_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "csr_row_split/segments.hpp"
#include "gpu/cuda_check.hpp"

namespace spmmbench::row_split {
namespace {

constexpr int kThreads = 256;

struct Shares {
  unsigned long long joined, all;  // segments of rows that could be joined; of all

  __device__ bool join() const {
    return worth_joining(static_cast<std::int64_t>(joined), static_cast<std::int64_t>(all));
  }
};

// Segments of each kind, and rows that are cut and not joined.
struct Counts {
  std::int64_t fours, twos, cut, cut_rows, whole;

  __host__ __device__ Counts operator+(const Counts& o) const {
    return {fours + o.fours, twos + o.twos, cut + o.cut, cut_rows + o.cut_rows, whole + o.whole};
  }
};

__device__ Counts counts_of(std::int64_t parts, bool join) {
  Counts out{};
  if (parts == 1) out.whole = 1;
  else if (join && parts == kMostJoined) out.fours = parts;
  else if (join && parts == 2) out.twos = parts;
  else {
    out.cut = parts;
    out.cut_rows = 1;
  }
  return out;
}

__global__ void __launch_bounds__(kThreads)
    share_segments(DeviceCsr a, std::int64_t split, Shares* shares) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  unsigned long long joined = 0, all = 0;
  if (row < a.rows) {
    all = segments_of(a.row_ptr[row + 1] - a.row_ptr[row], split);
    joined = all > 1 && all <= kMostJoined ? all : 0;
  }
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    joined += __shfl_down_sync(0xFFFFFFFFU, joined, lanes);
    all += __shfl_down_sync(0xFFFFFFFFU, all, lanes);
  }
  if (threadIdx.x % 32 != 0) return;
  atomicAdd(&shares->joined, joined);
  atomicAdd(&shares->all, all);
}

// counts[row], and zeros behind the last row, where the scan leaves the sums of all.
__global__ void count_segments(DeviceCsr a, std::int64_t split, const Shares* shares,
                               Counts* counts) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const bool join = shares->join();
  if (row < a.rows)
    counts[row] = counts_of(parts_of(a.row_ptr[row + 1] - a.row_ptr[row], split, join), join);
  if (row == a.rows) counts[row] = {};
}

// `before`: the sums over earlier rows.
__global__ void write_segments(DeviceCsr a, const std::int32_t* row_ids, std::int64_t split,
                               const Shares* shares, const Counts* before, Segment* segments,
                               SplitRow* split_rows) {
  const std::int64_t row = std::int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32;
  if (row >= a.rows) return;
  const bool join = shares->join();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const Counts& at = before[row];
  const Counts& all = before[a.rows];
  const std::int64_t begin = a.row_ptr[row], length = a.row_ptr[row + 1] - begin;
  const std::int64_t parts = parts_of(length, split, join);
  std::int32_t target = row_ids == nullptr ? static_cast<std::int32_t>(row) : row_ids[row];
  std::int64_t to = 0;
  if (parts == 1) to = all.fours + all.twos + all.cut + at.whole;
  else if (join && parts == kMostJoined) to = at.fours;
  else if (join && parts == 2) to = all.fours + at.twos;
  else {
    to = all.fours + all.twos + at.cut;
    if (lane == 0) split_rows[at.cut_rows] = {target, static_cast<std::int32_t>(parts)};
    target = ~static_cast<std::int32_t>(at.cut_rows);
  }
  for (std::int64_t part = lane; part < parts; part += 32) {
    const std::int64_t from = length * part / parts, end = length * (part + 1) / parts;
    segments[to + part] = {begin + from, static_cast<std::int32_t>(end - from), target};
  }
}

// The longest first, equal ones as they come: a CTA for kSortedRows whole rows.
constexpr int kPerThread = static_cast<int>(kSortedRows) / kThreads;
__global__ void __launch_bounds__(kThreads)
    sort_by_length(Segment* whole, std::int64_t count, int bits) {
  using Sort = cub::BlockRadixSort<std::int32_t, kThreads, kPerThread, int>;
  __shared__ typename Sort::TempStorage temporary;
  __shared__ Segment segments[kSortedRows];
  Segment* const own = whole + std::int64_t{blockIdx.x} * kSortedRows;
  const auto rows =
      static_cast<int>(min(kSortedRows, count - std::int64_t{blockIdx.x} * kSortedRows));
  std::int32_t lengths[kPerThread];
  int places[kPerThread];
  for (int i = 0; i < kPerThread; ++i) {
    places[i] = static_cast<int>(threadIdx.x) * kPerThread + i;
    lengths[i] = 0;  // of those past the end, which come last: the sort is stable
    if (places[i] >= rows) continue;
    segments[places[i]] = own[places[i]];
    lengths[i] = segments[places[i]].length;
  }
  Sort(temporary).SortDescending(lengths, places, 0, bits);
  __syncthreads();
  for (int i = 0; i < kPerThread; ++i) {
    const int to = static_cast<int>(threadIdx.x) * kPerThread + i;
    if (to < rows) own[to] = segments[places[i]];
  }
}

unsigned ctas_for(std::int64_t threads) {
  return static_cast<unsigned>(std::max<std::int64_t>(1, (threads + kThreads - 1) / kThreads));
}

struct Sum {
  __host__ __device__ Counts operator()(const Counts& x, const Counts& y) const { return x + y; }
};

}  // namespace

DeviceSegments cut_rows(const DeviceCsr& a, const std::int32_t* row_ids, std::int64_t split,
                        Device& device) {
  const auto stream = static_cast<cudaStream_t>(device.stream().handle);
  const Buffer shared = device.allocate(sizeof(Shares));
  device.fill_bytes(shared.data(), 0, shared.bytes());
  share_segments<<<ctas_for(a.rows), kThreads, 0, stream>>>(a, split, shared.as<Shares>());
  SPMMBENCH_CUDA_LAUNCHED();
  const std::int64_t places = a.rows + 1;
  const Buffer counts = device.allocate(places * sizeof(Counts));
  const Buffer before = device.allocate(places * sizeof(Counts));
  count_segments<<<ctas_for(places), kThreads, 0, stream>>>(a, split, shared.as<Shares>(),
                                                            counts.as<Counts>());
  SPMMBENCH_CUDA_LAUNCHED();
  std::size_t bytes = 0;
  const auto scan = [&](void* temporary) {
    SPMMBENCH_CUDA(cub::DeviceScan::ExclusiveScan(
        temporary, bytes, static_cast<const Counts*>(counts.as<Counts>()), before.as<Counts>(),
        Sum{}, Counts{}, static_cast<std::int32_t>(places), stream));
  };
  scan(nullptr);
  const Buffer temporary = device.allocate(std::max<std::size_t>(bytes, 1));
  scan(temporary.data());
  Counts all{};
  device.download(&all, before.as<Counts>() + a.rows, sizeof all);

  DeviceSegments out;
  out.fours_end = all.fours;
  out.twos_end = all.fours + all.twos;
  out.count = out.twos_end + all.cut + all.whole;
  out.split_count = all.cut_rows;
  out.segments = device.allocate(out.count * sizeof(Segment));
  out.split_rows = device.allocate(out.split_count * sizeof(SplitRow));
  write_segments<<<ctas_for(a.rows * 32), kThreads, 0, stream>>>(
      a, row_ids, split, shared.as<Shares>(), before.as<Counts>(), out.segments.as<Segment>(),
      out.split_rows.as<SplitRow>());
  SPMMBENCH_CUDA_LAUNCHED();
  if (all.whole > 0) {
    const int bits = 64 - __builtin_clzll(static_cast<unsigned long long>(split));
    const std::int64_t ctas = (all.whole + kSortedRows - 1) / kSortedRows;
    sort_by_length<<<static_cast<unsigned>(ctas), kThreads, 0, stream>>>(
        out.segments.as<Segment>() + out.twos_end + all.cut, all.whole, bits);
    SPMMBENCH_CUDA_LAUNCHED();
  }
  device.synchronize();
  return out;
}

}  // namespace spmmbench::row_split
