// Builds bitmap queues on the device, a CTA for each segment, in two passes over A:
//
//   fill_blocks   which positions of a block of steps are stored, by all threads; then which lane
//                 takes which queue and what it takes, by one warp, step by step
//   sum_levels    the levels before each segment, and in all, which the host needs to allocate
//   fill_words    the values of a block of steps, by all threads; then the words of a step by each
//                 warp, which follows the queues as a reader of the format does

#include "bitmap_dense/device_build.hpp"
#include "common/device_arrays.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <cub/block/block_scan.cuh>

#include "bitmap_dense/bitmap_bits.hpp"
#include "common/memory_layout.hpp"
#include "gpu/cuda_check.hpp"

namespace spmmbench::bitmap_dense {
namespace {

using Panels = BitmapPanels;
using Segment = Panels::Segment;

constexpr unsigned kAllLanes = 0xFFFFFFFFU;
constexpr int kLanes = Panels::kLanes;
constexpr int kBlockSteps = Panels::kBlockSteps;
constexpr int kThreads = kLanes * kBlockSteps;  // a warp for each step of a block
constexpr int kRowThreads = kThreads / Panels::kPanelRows;
static_assert(kLanes % kRowThreads == 0, "the threads of a row are in one warp");

// The entries of a row of the panel, from left to right, for the threads of that row. `step_cols`:
// columns of A in a step.
class RowEntries {
 public:
  __device__ RowEntries(const DeviceCsr& a, const Segment& segment, int step_cols)
      : columns_(a.col_idx) {
    const std::int64_t row =
        std::int64_t{segment.panel} * Panels::kPanelRows + threadIdx.x / kRowThreads;
    if (row >= a.rows) return;
    next_ = a.row_ptr[row];
    end_ = a.row_ptr[row + 1];
    const std::int64_t first_column = std::int64_t{segment.first_step} * step_cols;
    if (first_column == 0) return;
    for (std::int64_t last = end_; next_ < last;) {
      const std::int64_t middle = next_ + (last - next_) / 2;
      if (columns_[middle] < first_column) next_ = middle + 1;
      else last = middle;
    }
  }

  // visit(entry, column) for those not visited yet and before the column `end`. All threads of the
  // CTA call it together.
  template <class Visit>
  __device__ void visit_before(std::int64_t end, const Visit& visit) {
    constexpr int kAtOnce = 4;  // loads in flight
    constexpr unsigned kOfRow = (1U << kRowThreads) - 1;
    const unsigned first_lane = threadIdx.x % kLanes / kRowThreads * kRowThreads;
    for (bool more = true; more;) {
      std::int32_t column[kAtOnce];
      bool inside[kAtOnce];
      int visited = 0;
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const std::int64_t at = next_ + i * kRowThreads + threadIdx.x % kRowThreads;
        column[i] = at < end_ ? __ldg(columns_ + at) : 0;
        inside[i] = at < end_ && column[i] < end;
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (inside[i]) visit(next_ + i * kRowThreads + threadIdx.x % kRowThreads, column[i]);
        visited += __popc(__ballot_sync(kAllLanes, inside[i]) >> first_lane & kOfRow);
      }
      next_ += visited;
      more = __any_sync(kAllLanes, visited == kAtOnce * kRowThreads) != 0;
    }
  }

 private:
  const std::int32_t* columns_;
  std::int64_t next_ = 0, end_ = 0;
};

// A column of a segment: the step of its block of steps, the place in that step, and which of the
// kColumns that lie there together.
struct Element {
  int step;
  bitmap_bits::Place place;
  int which;
};
template <int kColumns>
__device__ Element element_at(std::int64_t column, std::int64_t first_column) {
  const auto of_block = static_cast<int>(column - first_column), in_block = of_block / kColumns;
  return {in_block / Panels::kStepCols,
          bitmap_bits::place_of(static_cast<int>(threadIdx.x) / kRowThreads,
                                in_block % Panels::kStepCols),
          of_block % kColumns};
}

// Values of 16 or of 8 bits.
template <int kColumns>
using ValueBits = std::conditional_t<kColumns == 1, std::uint16_t, std::uint8_t>;

// A warp that hands out the queues of one segment, block by block (Readers and QueueFiller of the
// host's build).
template <class Queues>
class QueueDealer {
 public:
  using Block = typename Queues::Block;
  using Bits = typename Queues::Bits;

  // `present`: [step][lane]; `holders`: room for a number of each lane.
  __device__ void deal(const std::uint32_t* present, int steps, int* holders, Block& block) {
    int demand = 0;
    for (int step = 0; step < steps; ++step)
      demand += Queues::words_of(bitmap_bits::stored<Queues>(present[step * kLanes + lane_]));
    const int from = hand_over(demand, holders);
    Bits bits[kBlockSteps] = {};
    unsigned flags = 0;  // a bit for each step that needs a unit, and for each that leaves one
    for (int step = 0; step < steps; ++step) {
      const int least = take(present[step * kLanes + lane_], bits[step]);
      if ((most_ + Queues::kUnitLevels - 1) / Queues::kUnitLevels > needed_) {
        ++needed_;
        flags |= 1U << step;
      }
      if (least / Queues::kUnitLevels > released_) {
        ++released_;
        flags |= 1U << (kBlockSteps + step);
      }
    }
#pragma unroll
    for (int step = 0; step < kBlockSteps; ++step)
      block.bits[step / Queues::kGroupSteps][lane_][step % Queues::kGroupSteps] = bits[step];
    block.hand_over[lane_] =
        static_cast<std::uint8_t>(from | ((flags >> lane_ & 1U) != 0 ? Block::kFlag : 0));
  }
  __device__ int levels() const { return most_; }

 private:
  // The least consumed queue goes to the lane with the largest demand. Returns the lane that had
  // this lane's new queue.
  __device__ int hand_over(int demand, int* holders) {
    int demand_rank = 0, level_rank = 0;
#pragma unroll
    for (int other = 0; other < kLanes; ++other) {
      const int their_demand = __shfl_sync(kAllLanes, demand, other);
      const int their_level = __shfl_sync(kAllLanes, level_, other);
      const bool before = other < lane_;
      demand_rank += their_demand > demand || (their_demand == demand && before);
      level_rank += their_level < level_ || (their_level == level_ && before);
    }
    holders[level_rank] = lane_;
    __syncwarp();
    const int from = holders[demand_rank];
    __syncwarp();
    level_ = __shfl_sync(kAllLanes, level_, from);
    return from;
  }

  // What this lane stores of a step. Returns the levels that the least consumed queue has left
  // behind.
  __device__ int take(std::uint32_t present, Bits& bits) {
    bits = bitmap_bits::stored<Queues>(present);
    most_ = max(most_, __reduce_max_sync(kAllLanes, level_ + Queues::words_read(bits)));
    const int missing = most_ - Queues::kMaxLag - level_ - Queues::words_of(bits);
    if (missing > 0) bits = bitmap_bits::stored<Queues>(present, missing);
    level_ += Queues::words_of(bits);
    return min(most_, __reduce_min_sync(kAllLanes, level_));
  }

  int lane_ = static_cast<int>(threadIdx.x) % kLanes;
  int level_ = 0;  // of the queue that this lane reads
  int most_ = 0, needed_ = 0, released_ = 0;
};

template <class Queues, int kColumns>
__global__ void __launch_bounds__(kThreads)
    fill_blocks(DeviceCsr a, Segment* segments, typename Queues::Block* blocks) {
  __shared__ std::uint32_t present[kThreads];  // [step][lane]
  __shared__ int holders[kLanes];
  const Segment segment = segments[blockIdx.x];
  typename Queues::Block* block = blocks + segment.first_block;
  constexpr int kStepCols = Panels::kStepCols * kColumns;
  RowEntries entries(a, segment, kStepCols);
  QueueDealer<Queues> dealer;
  for (int first = 0; first < segment.steps; first += kBlockSteps, ++block) {
    present[threadIdx.x] = 0;
    __syncthreads();
    const std::int64_t column = std::int64_t{segment.first_step + first} * kStepCols;
    const int steps = min(kBlockSteps, segment.steps - first);
    entries.visit_before(column + steps * kStepCols, [&](std::int64_t, std::int32_t of_entry) {
      const Element element = element_at<kColumns>(of_entry, column);
      atomicOr(&present[element.step * kLanes + element.place.lane], 1U << element.place.position);
    });
    __syncthreads();
    if (threadIdx.x < kLanes) dealer.deal(present, steps, holders, *block);
    __syncthreads();
  }
  if (threadIdx.x == 0) segments[blockIdx.x].levels = dealer.levels();
}

constexpr int kSumThreads = 1024;

__global__ void __launch_bounds__(kSumThreads)
    sum_levels(Segment* segments, std::int64_t count, std::int64_t* all) {
  using Scan = cub::BlockScan<std::int64_t, kSumThreads>;
  __shared__ typename Scan::TempStorage temporary;
  std::int64_t before = 0;
  for (std::int64_t first = 0; first < count; first += kSumThreads) {
    const std::int64_t own = first + threadIdx.x;
    std::int64_t levels = own < count ? segments[own].levels : 0, of_these = 0;
    Scan(temporary).ExclusiveSum(levels, levels, of_these);
    if (own < count) segments[own].first_level = before + levels;
    before += of_these;
    __syncthreads();  // the scan's memory is used again
  }
  if (threadIdx.x == 0) *all = before;
}

// Values of a lane's positions in a step, and one word more, so that lanes that read the same
// position read different banks.
constexpr int kLaneValues = Panels::kLanePositions + 2;

// word(w) for each word of a lane's step, in order.
template <class Queues, class Word>
__device__ void for_each_word(typename Queues::Bits bits, const std::uint16_t* values,
                              const Word& word) {
  if constexpr (Queues::kPairs) {
    for (unsigned rest = bits; rest != 0; rest &= rest - 1) {
      const int position = 2 * (__ffs(static_cast<int>(rest)) - 1);
      word(values[position] | std::uint32_t{values[position + 1]} << 16);
    }
  } else {
    for (int fragment = 0; fragment < Panels::kStepFragments; ++fragment) {
      std::uint32_t first = 0;
      bool has_first = false;
      for (unsigned rest = bits & 0xFFU << 8 * fragment; rest != 0; rest &= rest - 1) {
        const std::uint32_t value = values[__ffs(static_cast<int>(rest)) - 1];
        if (has_first) word(first | value << 16);
        else first = value;
        has_first = !has_first;
      }
      if (has_first) word(first);
    }
  }
}

template <class Queues, int kColumns>
__global__ void __launch_bounds__(kThreads)
    fill_words(DeviceCsr a, const Segment* segments, const typename Queues::Block* blocks,
               std::uint32_t* words) {
  using Block = typename Queues::Block;
  __shared__ uint4 block_memory[sizeof(Block) / sizeof(uint4)];
  const Block& block = *reinterpret_cast<const Block*>(block_memory);
  __shared__ __align__(16) std::uint16_t values[kThreads * kLaneValues];  // [step][lane]
  const Segment segment = segments[blockIdx.x];
  using Value = ValueBits<kColumns>;
  constexpr int kStepCols = Panels::kStepCols * kColumns;
  const auto* const a_values = static_cast<const Value*>(a.values);
  const int lane = static_cast<int>(threadIdx.x) % kLanes,
            warp = static_cast<int>(threadIdx.x) / kLanes;
  RowEntries entries(a, segment, kStepCols);
  int queue = lane, level = 0;
  for (int first = 0; first < segment.steps; first += kBlockSteps) {
    for (int i = static_cast<int>(threadIdx.x); i < int{sizeof values / sizeof(uint4)};
         i += kThreads)
      reinterpret_cast<uint4*>(values)[i] = make_uint4(0, 0, 0, 0);
    if (threadIdx.x < sizeof(Block) / sizeof(uint4))
      block_memory[threadIdx.x] = reinterpret_cast<const uint4*>(blocks + segment.first_block +
                                                                 first / kBlockSteps)[threadIdx.x];
    __syncthreads();
    const std::int64_t column = std::int64_t{segment.first_step + first} * kStepCols;
    const int steps = min(kBlockSteps, segment.steps - first);
    entries.visit_before(
        column + steps * kStepCols, [&](std::int64_t entry, std::int32_t of_entry) {
          const Element element = element_at<kColumns>(of_entry, column);
          const int at =
              (element.step * kLanes + element.place.lane) * kLaneValues + element.place.position;
          reinterpret_cast<Value*>(values)[at * kColumns + element.which] = __ldg(a_values + entry);
        });
    __syncthreads();
    const int from = block.hand_over[lane] % kLanes;
    queue = __shfl_sync(kAllLanes, queue, from);
    level = __shfl_sync(kAllLanes, level, from);
    const auto bits_of = [&](int step) {
      return block.bits[step / Queues::kGroupSteps][lane][step % Queues::kGroupSteps];
    };
    std::int64_t at = segment.first_level + level;
    for (int step = 0; step < kBlockSteps; ++step) {
      const int taken = Queues::words_of(bits_of(step));
      if (step < warp) at += taken;
      level += taken;
    }
    if (warp < steps) {
      const std::uint16_t* const own = values + threadIdx.x * kLaneValues;
      for_each_word<Queues>(bits_of(warp), own,
                            [&](std::uint32_t word) { words[at++ * kLanes + queue] = word; });
    }
    __syncthreads();
  }
}

__global__ void copy_runs(const Segment* from, const std::int32_t* first, int runs, int count,
                          Segment* to) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < runs * count) to[i] = from[first[i / count] + i % count];
}

}  // namespace

template <class Queues, int kColumns>
DeviceQueues build_from(const DeviceCsr& a, const std::vector<BitmapPanels::Range>& ranges,
                        Device& device) {
  using Block = typename Queues::Block;
  const cudaStream_t stream = stream_of(device);
  const std::vector<Segment> segments = Panels::segments_of(ranges);
  DeviceQueues out;
  out.segment_count = std::ssize(segments);
  out.block_count = Panels::blocks_in(segments);
  if (out.block_count == 0) return out;
  out.segments = device.upload(segments);
  out.blocks = device.allocate(out.block_count * sizeof(Block));
  const Buffer all = device.allocate(sizeof(std::int64_t));
  auto* const of_device = out.segments.as<Segment>();
  const auto ctas = static_cast<unsigned>(out.segment_count);
  fill_blocks<Queues, kColumns>
      <<<ctas, kThreads, 0, stream>>>(a, of_device, out.blocks.as<Block>());
  SPMMBENCH_CUDA_LAUNCHED();
  sum_levels<<<1, kSumThreads, 0, stream>>>(of_device, out.segment_count, all.as<std::int64_t>());
  SPMMBENCH_CUDA_LAUNCHED();
  device.download(&out.levels, all.data(), sizeof out.levels);
  out.words = device.allocate(out.levels * kLanes * sizeof(std::uint32_t));
  device.fill_bytes(out.words.data(), 0, out.words.bytes());
  fill_words<Queues, kColumns><<<ctas, kThreads, 0, stream>>>(a, of_device, out.blocks.as<Block>(),
                                                              out.words.as<std::uint32_t>());
  SPMMBENCH_CUDA_LAUNCHED();
  device.synchronize();
  return out;
}

template <class Queues>
DeviceQueues build_queues(const DeviceCsr& a, const std::vector<BitmapPanels::Range>& ranges,
                          Device& device) {
  return bytes_of(a.value_type) == 1 ? build_from<Queues, 2>(a, ranges, device)
                                     : build_from<Queues, 1>(a, ranges, device);
}

template DeviceQueues build_queues<PairQueues>(const DeviceCsr&,
                                               const std::vector<BitmapPanels::Range>&, Device&);
template DeviceQueues build_queues<ValueQueues>(const DeviceCsr&,
                                                const std::vector<BitmapPanels::Range>&, Device&);

Buffer copy_segments(const DeviceQueues& queues, const std::vector<std::int32_t>& first, int count,
                     Device& device) {
  const auto all = static_cast<int>(first.size()) * count;
  Buffer out = device.allocate(all * sizeof(Segment));
  if (all == 0) return out;
  const Buffer of_device = device.upload(first);
  copy_runs<<<(all + kThreads - 1) / kThreads, kThreads, 0, stream_of(device)>>>(
      queues.segments.as<Segment>(), of_device.as<std::int32_t>(), static_cast<int>(first.size()),
      count, out.as<Segment>());
  SPMMBENCH_CUDA_LAUNCHED();
  device.synchronize();
  return out;
}

}  // namespace spmmbench::bitmap_dense
