// Rows cut into segments on the device, in the order of cut_rows, by two kernels and one wait.
// What a row becomes depends on its segments alone: one, two, three, four or more. From the numbers
// of rows of each kind before it follows where its segments lie, whether rows are joined or not.
//
//   count_blocks    these numbers for each block of 1024 rows; the CTA that arrives last adds them
//                   up, and tells the host the sums
//   write_segments  a CTA for each block: the segments of its rows that are cut, and the next 1024
//                   whole rows by length, wherever they are

#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include "common/device_arrays.hpp"
#include "common/memory_layout.hpp"
#include "csr_row_split/segments.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/told_to_host.hpp"

namespace spmmbench::row_split {
namespace {

constexpr int kThreads = 256, kWarpLanes = 32;
constexpr int kPerThread = static_cast<int>(kSortedRows) / kThreads;
constexpr std::int64_t kBlockRows = kSortedRows;

// Rows by how many segments they are cut into if none is joined.
struct Kinds {
  std::int64_t whole, twos, threes, fours, more;
  std::int64_t segments_of_more;

  __host__ __device__ Kinds operator+(const Kinds& o) const {
    return {whole + o.whole, twos + o.twos, threes + o.threes,
            fours + o.fours, more + o.more, segments_of_more + o.segments_of_more};
  }
  __host__ __device__ bool join() const {
    const std::int64_t few = 2 * twos + 3 * threes + 4 * fours;
    return worth_joining(few, whole + few + segments_of_more);
  }
};

// The same of at most 4095 rows: a sum takes two additions.
struct PackedKinds {
  std::uint64_t rows;  // 12 bits for each kind
  std::int64_t segments_of_more;

  static constexpr int kBits = 12;
  static_assert(kBlockRows < 1 << kBits);

  static __device__ PackedKinds of(std::int64_t parts) {
    const int kind = static_cast<int>(min(parts, std::int64_t{5})) - 1;
    return {std::uint64_t{1} << (kind * kBits), parts > 4 ? parts : 0};
  }
  __device__ std::int64_t of_kind(int kind) const {
    return static_cast<std::int64_t>(rows >> (kind * kBits) & ((1U << kBits) - 1));
  }
  __device__ Kinds unpacked() const {
    return {of_kind(0), of_kind(1), of_kind(2), of_kind(3), of_kind(4), segments_of_more};
  }
  __device__ PackedKinds operator+(const PackedKinds& o) const {
    return {rows + o.rows, segments_of_more + o.segments_of_more};
  }
};

struct Sum {
  template <class T>
  __device__ T operator()(const T& x, const T& y) const {
    return x + y;
  }
};

// Segments of rows joined by four and by two, of other rows that are cut, these rows, and their
// slots.
struct Cut {
  std::int64_t fours, twos, cut, cut_rows, slots;

  __host__ __device__ Cut(const Kinds& of, bool join)
      : fours(join ? 4 * (of.threes + of.fours) : 0),
        twos(join ? 2 * of.twos : 0),
        cut(of.segments_of_more + (join ? 0 : 2 * of.twos + 3 * of.threes + 4 * of.fours)),
        cut_rows(of.more + (join ? 0 : of.twos + of.threes + of.fours)),
        slots(slots_before(cut, cut_rows)) {}
  __host__ __device__ std::int64_t segments() const { return fours + twos + cut; }
};

// One CTA: the sums before each block, in place, and of all.
__device__ void add_up(Kinds* blocks, std::int64_t count, Kinds* all, Kinds* told) {
  using Scan = cub::BlockScan<Kinds, kThreads, cub::BLOCK_SCAN_WARP_SCANS>;
  __shared__ typename Scan::TempStorage temporary;
  Kinds before{};
  for (std::int64_t first = 0; first < count; first += kThreads) {
    const std::int64_t own = first + threadIdx.x;
    const Kinds mine = own < count ? blocks[own] : Kinds{};
    Kinds sum{}, of_these{};
    Scan(temporary).ExclusiveScan(mine, sum, Kinds{}, Sum{}, of_these);
    if (own < count) blocks[own] = before + sum;
    before = before + of_these;
    __syncthreads();  // the scan's memory is used again
  }
  if (threadIdx.x != 0) return;
  *all = before;
  *told = before;
}

__global__ void __launch_bounds__(kThreads)
    count_blocks(DeviceCsr a, std::int64_t split, Kinds* blocks, Kinds* all, Kinds* told,
                 unsigned* arrivals) {
  using Reduce = cub::BlockReduce<PackedKinds, kThreads>;
  __shared__ typename Reduce::TempStorage temporary;
  __shared__ bool is_last;
  PackedKinds mine{};
  for (int i = 0; i < kPerThread; ++i) {
    const std::int64_t row = blockIdx.x * kBlockRows + i * kThreads + threadIdx.x;
    if (row < a.rows)
      mine = mine + PackedKinds::of(segments_of(a.row_ptr[row + 1] - a.row_ptr[row], split));
  }
  const PackedKinds sum = Reduce(temporary).Reduce(mine, Sum{});
  if (threadIdx.x == 0) {
    blocks[blockIdx.x] = sum.unpacked();
    __threadfence();
    is_last = atomicAdd(arrivals, 1U) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  add_up(blocks, gridDim.x, all, told);
  if (threadIdx.x == 0) *arrivals = 0;
}

// The matrix, and where everything goes.
struct Task {
  DeviceCsr a;
  const std::int32_t* row_ids;  // or null
  std::int64_t split;
  const Kinds* before;  // each block
  const Kinds* all;
  Segment* segments;
  Slot* slots;
  int length_bits;

  __device__ std::int32_t row_of_c(std::int64_t row) const {
    return row_ids == nullptr ? static_cast<std::int32_t>(row) : row_ids[row];
  }
};

// A thread has kPerThread consecutive rows of a block of rows. Of each: where it begins, what it
// holds, and the rows of the block before it.
struct BlockRows {
  std::int64_t begin[kPerThread + 1];
  std::int64_t parts[kPerThread];  // 0: past the last row
  PackedKinds before[kPerThread];
  std::int64_t first;  // row of this thread

  using Scan = cub::BlockScan<PackedKinds, kThreads>;

  // By all threads; ends with a barrier.
  __device__ void read(const Task& task, std::int64_t block,
                       typename Scan::TempStorage& temporary) {
    first = block * kBlockRows + std::int64_t{threadIdx.x} * kPerThread;
    PackedKinds kinds[kPerThread];
    for (int i = 0; i <= kPerThread; ++i) begin[i] = task.a.row_ptr[min(first + i, task.a.rows)];
    for (int i = 0; i < kPerThread; ++i) {
      parts[i] = first + i < task.a.rows ? segments_of(begin[i + 1] - begin[i], task.split) : 0;
      kinds[i] = parts[i] > 0 ? PackedKinds::of(parts[i]) : PackedKinds{};
    }
    Scan(temporary).ExclusiveScan(kinds, before, PackedKinds{}, Sum{});
    __syncthreads();
  }
};

// Writes the segments of the rows of a block that are cut.
class CutRows {
 public:
  __device__ CutRows(const Task& task, const BlockRows& rows, const Kinds& before, const Kinds& all)
      : task_(task), rows_(rows), before_(before), join_(all.join()), sums_(all, join_) {}

  // By all threads. Those of many segments are listed and cut by all of them, one after the other;
  // what the list does not hold, by a warp.
  __device__ void write() const {
    constexpr std::int64_t kMany = 64;
    constexpr int kListed = 256;
    __shared__ Row listed[kListed];
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      const Row row = rows_.parts[i] > 1 ? place(i) : Row{};
      const bool is_long = row.parts > kMany;
      const int at = is_long ? atomicAdd(&count, 1) : 0;
      if (!is_long) write_all(row);
      else if (at < kListed) listed[at] = row;
      for (unsigned left = __ballot_sync(~0U, is_long && at >= kListed); left != 0;
           left &= left - 1)
        write_parts(row.of_lane(__ffs(static_cast<int>(left)) - 1),
                    static_cast<int>(threadIdx.x) % kWarpLanes, kWarpLanes);
    }
    __syncthreads();
    for (int i = 0; i < min(count, kListed); ++i)
      write_parts(listed[i], static_cast<int>(threadIdx.x), kThreads);
  }

 private:
  struct Row {
    std::int64_t begin, length, parts, to;
    std::int32_t target;  // row of C, or ~index of the first slot

    __device__ Row of_lane(int lane) const {
      return {__shfl_sync(~0U, begin, lane), __shfl_sync(~0U, length, lane),
              __shfl_sync(~0U, parts, lane), __shfl_sync(~0U, to, lane),
              __shfl_sync(~0U, target, lane)};
    }
  };

  __device__ Row place(int i) const {
    const Cut at(before_ + rows_.before[i].unpacked(), join_);
    const std::int32_t row = task_.row_of_c(rows_.first + i);
    Row out{rows_.begin[i], rows_.begin[i + 1] - rows_.begin[i], rows_.parts[i], 0, row};
    if (join_ && out.parts <= kMostJoined) {
      if (out.parts > 2) out.parts = kMostJoined;
      out.to = out.parts == 2 ? sums_.fours + at.twos : at.fours;
      return out;
    }
    out.to = sums_.fours + sums_.twos + at.cut;
    task_.slots[at.slots] = SlotsOfRow{at.slots, out.parts}.upper_slot(row);
    out.target = ~static_cast<std::int32_t>(at.slots);
    return out;
  }

  // Without a division for each part: those that are longer by one come where the sum of remainders
  // reaches the number of parts.
  __device__ void write_all(const Row& row) const {
    if (row.parts == 0) return;
    const auto parts = static_cast<std::uint32_t>(row.parts);
    const auto length = static_cast<std::uint32_t>(row.length);
    const std::uint32_t least = length / parts, remainder = length % parts;
    std::int64_t from = row.begin;
    Segment* const to = task_.segments + row.to;
    for (std::uint32_t part = 0, sum = 0; part < parts; ++part) {
      sum += remainder;
      const bool is_longer = sum >= parts;
      if (is_longer) sum -= parts;
      const auto own = static_cast<std::int32_t>(least + (is_longer ? 1 : 0));
      to[part] = {from, own, row.target};
      from += own;
    }
  }

  // Of a row that is not joined.
  __device__ void write_parts(const Row& row, int first, int step) const {
    const SlotsOfRow slots{~row.target, row.parts};
    for (std::int64_t part = first; part < row.parts; part += step) {
      const std::int64_t from = share_of(row.length, part, row.parts);
      const std::int64_t end = share_of(row.length, part + 1, row.parts);
      const std::int32_t target = slots.target_of(part);
      task_.segments[row.to + part] = {row.begin + from, static_cast<std::int32_t>(end - from),
                                       target};
      const std::int64_t slot = part / kSegmentsOfSlot;
      if (part % kSegmentsOfSlot == 0 && !slots.one() && slot < slots.lower_slots())
        task_.slots[~target] = slots.lower_slot(slot);
    }
  }

  const Task& task_;
  const BlockRows& rows_;
  const Kinds& before_;
  bool join_;
  Cut sums_;
};

// The block of rows that has whole row number `rank`. It has that number itself or, for each 1024
// rows that are cut, a later one.
__device__ std::int64_t block_of_whole(const Task& task, const Kinds& all, std::int64_t rank,
                                       std::int64_t blocks) {
  const std::int64_t cut_rows = task.a.rows - all.whole;
  std::int64_t low = rank / kBlockRows;
  std::int64_t high = min(blocks, low + cut_rows / kBlockRows + 2);
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    (task.before[middle].whole <= rank ? low : high) = middle;
  }
  return low;
}

// The longest first, equal ones as they come.
__device__ void write_by_length(const Segment* chosen, int count, int bits, Segment* to) {
  using Sort = cub::BlockRadixSort<std::int32_t, kThreads, kPerThread, int>;
  __shared__ typename Sort::TempStorage temporary;
  std::int32_t lengths[kPerThread];
  int places[kPerThread];
  for (int i = 0; i < kPerThread; ++i) {
    places[i] = static_cast<int>(threadIdx.x) * kPerThread + i;
    // 0 for those past the end, which come last: the sort is stable
    lengths[i] = places[i] < count ? chosen[places[i]].length : 0;
  }
  Sort(temporary).SortDescendingBlockedToStriped(lengths, places, 0, bits);
  for (int i = 0; i < kPerThread; ++i) {
    const int at = i * kThreads + static_cast<int>(threadIdx.x);
    if (at < count) to[at] = chosen[places[i]];
  }
}

// The whole rows of a block from number `first` on, at their places among `count`.
__device__ void choose_whole(const Task& task, const BlockRows& rows, std::int64_t before,
                             int count, Segment* chosen) {
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const std::int64_t at = before + rows.before[i].of_kind(0);
    if (rows.parts[i] == 1 && at >= 0 && at < count)
      chosen[at] = {rows.begin[i], static_cast<std::int32_t>(rows.begin[i + 1] - rows.begin[i]),
                    task.row_of_c(rows.first + i)};
  }
}

__global__ void __launch_bounds__(kThreads) write_segments(const __grid_constant__ Task task) {
  __shared__ typename BlockRows::Scan::TempStorage temporary;
  __shared__ Segment chosen[kSortedRows];
  const Kinds all = *task.all;
  const std::int64_t blocks = gridDim.x;
  BlockRows rows;
  rows.read(task, blockIdx.x, temporary);
  if (all.whole < task.a.rows) CutRows(task, rows, task.before[blockIdx.x], all).write();

  const std::int64_t first = blockIdx.x * kBlockRows;  // of the whole rows
  const auto count = static_cast<int>(min(kBlockRows, all.whole - first));
  if (count <= 0) return;
  std::int64_t filled = 0;
  for (std::int64_t block = block_of_whole(task, all, first, blocks); filled < count; ++block) {
    if (block != blockIdx.x || filled > 0) rows.read(task, block, temporary);
    choose_whole(task, rows, task.before[block].whole - first, count, chosen);
    filled = (block + 1 < blocks ? task.before[block + 1].whole : all.whole) - first;
  }
  __syncthreads();
  const Cut cut(all, all.join());
  write_by_length(chosen, count, task.length_bits, task.segments + cut.segments() + first);
}

unsigned ctas_for(std::int64_t rows) {
  return static_cast<unsigned>(std::max<std::int64_t>(1, (rows + kBlockRows - 1) / kBlockRows));
}

}  // namespace

DeviceSegments cut_rows(const DeviceCsr& a, const std::int32_t* row_ids, std::int64_t split,
                        Device& device) {
  const cudaStream_t stream = stream_of(device);
  const unsigned blocks = ctas_for(a.rows);
  const ToldToHost told(device);
  const Buffer counts = device.allocate((blocks + 1) * sizeof(Kinds));
  Kinds* const before = counts.as<Kinds>();
  Kinds* const all = before + blocks;
  count_blocks<<<blocks, kThreads, 0, stream>>>(a, split, before, all, told.as<Kinds>(),
                                                told.arrivals());
  SPMMBENCH_CUDA_LAUNCHED();
  // No more than there are, so that the host need not wait for the sums. Only a row of more than
  // `split` nonzeros is cut. If rows are joined, three segments become four.
  const std::int64_t most_cut = a.nnz / split;
  DeviceSegments out;
  out.segments = device.allocate((a.rows + most_cut + most_cut / 2) * sizeof(Segment));
  out.slots = device.allocate(most_slots(a.nnz, split) * sizeof(Slot));
  const int length_bits = std::bit_width(static_cast<std::uint64_t>(split));
  write_segments<<<blocks, kThreads, 0, stream>>>(Task{a, row_ids, split, before, all,
                                                       out.segments.as<Segment>(),
                                                       out.slots.as<Slot>(), length_bits});
  SPMMBENCH_CUDA_LAUNCHED();
  device.synchronize();
  const Kinds found = told.read<Kinds>();
  const Cut cut(found, found.join());
  out.fours_end = cut.fours;
  out.twos_end = cut.fours + cut.twos;
  out.count = cut.segments() + found.whole;
  out.slot_count = cut.slots;
  out.cut_rows = cut.cut_rows;
  return out;
}

}  // namespace spmmbench::row_split
