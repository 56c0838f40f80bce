// Builds BCSR on the device.
//
//   mark_blocks     a CTA for each block row: its column blocks, as bits, and what lies before them
//   sum_blocks      the blocks before each block row, and in all, which the host needs to allocate
//   fill_blocks     a warp for each row: its values
//
// Then the groups: unit rows, the longest first, are compared with those after them, all at once;
// one CTA takes pairs; groups are sorted by their steps, which are written at last
// (async_bcsr/device_groups.cuh).

#include "async_bcsr/device_build.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "async_bcsr/device_groups.cuh"
#include "common/memory_layout.hpp"
#include "common/scratch.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/told_to_host.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench::async_bcsr {
namespace {

constexpr int kMarkThreads = 1024;
constexpr int kSlabWords = 8192;  // in shared memory at a time
constexpr std::int64_t kSlabBlocks = std::int64_t{kSlabWords} * kWordBits;

struct BlockCounts {
  unsigned long long all, widest;  // of all block rows, and of the one with most
};

// `kept`: its arrays, or none, to count alone. `counts`: the blocks of each block row, or of all.
template <bool kKeep>
__global__ void __launch_bounds__(kMarkThreads)
    mark_blocks(DeviceCsr a, Pattern kept, BlockCounts* counts) {
  using Scan = cub::BlockScan<std::int32_t, kMarkThreads>;
  __shared__ typename Scan::TempStorage temporary;
  __shared__ std::uint32_t bits[kSlabWords];
  const std::int64_t block_row = blockIdx.x;
  const std::int64_t begin = a.row_ptr[block_row * kept.bm],
                     end = a.row_ptr[min(a.rows, (block_row + 1) * kept.bm)];
  std::int32_t before = 0;  // blocks
  for (std::int64_t first = 0; first < kept.block_cols(); first += kSlabBlocks) {
    const auto words =
        static_cast<int>(min(std::int64_t{kSlabWords}, kept.words() - first / kWordBits));
    for (int word = static_cast<int>(threadIdx.x); word < words; word += kMarkThreads)
      bits[word] = 0;
    __syncthreads();
#pragma unroll 4
    for (std::int64_t at = begin + threadIdx.x; at < end; at += kMarkThreads) {
      const std::int64_t block = __ldg(a.col_idx + at) / kept.bk - first;
      if (block < 0 || block >= kSlabBlocks) continue;
      const std::uint32_t bit = 1U << block % kWordBits;
      std::uint32_t& word = bits[block / kWordBits];
      if ((*const_cast<volatile std::uint32_t*>(&word) & bit) == 0) atomicOr(&word, bit);
    }
    __syncthreads();
    for (int from = 0; from < words; from += kMarkThreads) {
      const int own = from + static_cast<int>(threadIdx.x);
      const std::uint32_t word = own < words ? bits[own] : 0;
      std::int32_t rank = __popc(word), of_these = 0;
      Scan(temporary).ExclusiveSum(rank, rank, of_these);
      if (kKeep && own < words) {
        const std::int64_t to = block_row * kept.words() + first / kWordBits + own;
        kept.bits[to] = word;
        kept.rank[to] = before + rank;
      }
      before += of_these;
      __syncthreads();  // the scan's memory is used again
    }
  }
  if (threadIdx.x != 0) return;
  if (kKeep) {
    kept.block_row_ptr[block_row] = before;
  } else {
    atomicAdd(&counts->all, static_cast<unsigned long long>(before));
    atomicMax(&counts->widest, static_cast<unsigned long long>(before));
  }
}

// From the blocks of each block row, in place: those before it, and at the end all.
__global__ void __launch_bounds__(kSumThreads)
    sum_blocks(std::int32_t* block_row_ptr, std::int64_t block_rows, BcsrPattern::Totals* totals) {
  using Scan = cub::BlockScan<std::int32_t, kSumThreads>;
  using Reduce = cub::BlockReduce<std::int32_t, kSumThreads>;
  __shared__ union {
    typename Scan::TempStorage scan;
    typename Reduce::TempStorage reduce;
  } shared;
  std::int32_t before = 0, longest = 0, filled = 0;
  for (std::int64_t first = 0; first <= block_rows; first += kSumThreads) {
    const std::int64_t own = first + threadIdx.x;
    const std::int32_t blocks = own < block_rows ? block_row_ptr[own] : 0;
    longest = max(longest, blocks);
    filled += blocks > 0;
    std::int32_t earlier = 0, of_these = 0;
    Scan(shared.scan).ExclusiveSum(blocks, earlier, of_these);
    if (own <= block_rows) block_row_ptr[own] = before + earlier;
    before += of_these;
    __syncthreads();  // the scan's memory is used again
  }
  longest = Reduce(shared.reduce).Reduce(longest, cuda::maximum<>{});
  __syncthreads();
  filled = Reduce(shared.reduce).Sum(filled);
  if (threadIdx.x == 0) *totals = {before, longest, filled};
}

// `width`: 0, or the blocks that a block row has room for, as Blocked-ELL has them.
template <class Bits>
__global__ void __launch_bounds__(kThreads)
    fill_blocks(DeviceCsr a, Pattern pattern, std::int64_t width, Bits* values) {
  const std::int64_t row = warp_of_grid();
  if (row >= a.rows) return;
  const std::int64_t block_row = row / pattern.bm, row_in_block = row % pattern.bm;
  const std::int64_t end = a.row_ptr[row + 1];
#pragma unroll 4
  for (std::int64_t at = a.row_ptr[row] + lane_of_warp(); at < end; at += kWarpLanes) {
    const std::int32_t column = __ldg(a.col_idx + at);
    const std::int64_t block = pattern.block_at(block_row, column / pattern.bk);
    const std::int64_t line = width == 0 ? block * pattern.bm + row_in_block
                                         : row * width + block - pattern.block_row_ptr[block_row];
    values[line * pattern.bk + column % pattern.bk] = static_cast<const Bits*>(a.values)[at];
  }
}

// A thread for each word of the pattern: its column blocks.
__global__ void __launch_bounds__(kThreads)
    list_blocks(Pattern pattern, std::int64_t width, std::int32_t* block_col) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (at >= pattern.block_rows() * pattern.words()) return;
  const std::int64_t block_row = at / pattern.words(), first = at % pattern.words() * kWordBits;
  std::int32_t* to = block_col + pattern.rank[at] +
                     (width == 0 ? pattern.block_row_ptr[block_row] : block_row * width);
  for (std::uint32_t bits = pattern.bits[at]; bits != 0; bits &= bits - 1)
    *to++ = static_cast<std::int32_t>(first) + __ffs(static_cast<int>(bits)) - 1;
}

// The column blocks of A, in `memory`, and what the host needs of them.
Pattern find_blocks(const DeviceCsr& a, int bm, int bk, Buffer& memory,
                    BcsrPattern::Totals& totals_out, Device& device) {
  Pattern pattern{a.rows, a.cols, bm, bk};
  const std::int64_t words = pattern.block_rows() * pattern.words();
  MemoryLayout layout;
  const std::size_t bits_at = layout.add(words * sizeof(std::uint32_t)),
                    rank_at = layout.add(words * sizeof(std::int32_t)),
                    ptr_at = layout.add((pattern.block_rows() + 1) * sizeof(std::int32_t));
  memory = device.allocate(layout.bytes());
  pattern.bits = array_at<std::uint32_t>(memory, bits_at);
  pattern.rank = array_at<std::int32_t>(memory, rank_at);
  pattern.block_row_ptr = array_at<std::int32_t>(memory, ptr_at);
  const ToldToHost told(device);
  const cudaStream_t stream = stream_of(device);
  if (const auto ctas = static_cast<unsigned>(pattern.block_rows()); ctas > 0) {
    mark_blocks<true><<<ctas, kMarkThreads, 0, stream>>>(a, pattern, nullptr);
    SPMMBENCH_CUDA_LAUNCHED();
  }
  sum_blocks<<<1, kSumThreads, 0, stream>>>(pattern.block_row_ptr, pattern.block_rows(),
                                            told.as<BcsrPattern::Totals>());
  SPMMBENCH_CUDA_LAUNCHED();
  device.synchronize();
  totals_out = told.read<BcsrPattern::Totals>();
  return pattern;
}

// Fills the values of `blocks` blocks (memory: at least one). `width` as in fill_blocks.
Buffer fill_values(const DeviceCsr& a, const Pattern& pattern, std::int64_t blocks,
                   std::int64_t width, Device& device) {
  Buffer values = device.allocate(std::max<std::int64_t>(1, blocks) * pattern.bm * pattern.bk *
                                  bytes_of(a.value_type));
  device.fill_bytes(values.data(), 0, values.bytes());
  if (a.nnz == 0) return values;
  visit_element(a.value_type, [&](auto element) {
    using Bits = typename decltype(element)::Bits;
    fill_blocks<<<ctas_for(a.rows * kWarpLanes), kThreads, 0, stream_of(device)>>>(
        a, pattern, width, values.as<Bits>());
    SPMMBENCH_CUDA_LAUNCHED();
  });
  return values;
}

// Sorts numbers 0 .. count - 1 by falling keys, equal ones in their order.
class Sorter {
 public:
  Sorter(std::int64_t count, Device& device)
      : count_(static_cast<std::int32_t>(count)), stream_(stream_of(device)) {
    sort(nullptr, nullptr, nullptr, nullptr, nullptr);
    memory_ = device.allocate(std::max<std::size_t>(bytes_, 1));
  }
  void operator()(const std::int32_t* keys, std::int32_t* sorted_keys, const std::int32_t* numbers,
                  std::int32_t* sorted_numbers) {
    sort(memory_.data(), keys, sorted_keys, numbers, sorted_numbers);
  }

 private:
  void sort(void* temporary, const std::int32_t* keys, std::int32_t* sorted_keys,
            const std::int32_t* numbers, std::int32_t* sorted_numbers) {
    SPMMBENCH_CUDA(cub::DeviceRadixSort::SortPairsDescending(temporary, bytes_, keys, sorted_keys,
                                                             numbers, sorted_numbers, count_, 0,
                                                             kKeyBits, stream_));
  }
  static constexpr int kKeyBits = 31;  // they are not negative
  std::int32_t count_;
  cudaStream_t stream_;
  std::size_t bytes_ = 0;
  Buffer memory_;
};

// Room for what is known of unit rows and groups, of which there are no more.
struct UnitArrays {
  UnitArrays(std::int64_t units, std::int64_t pairs, Device& device) {
    MemoryLayout layout;
    const std::size_t each = units * sizeof(std::int32_t);
    const std::size_t numbers_at = layout.add(each), keys_at = layout.add(each),
                      sorted_keys_at = layout.add(each), order_at = layout.add(each),
                      taken_at = layout.add(units), members_at = layout.add(2 * each),
                      blocks_at = layout.add(each), count_at = layout.add(sizeof(std::int32_t)),
                      common_at = layout.add(pairs * sizeof(std::int32_t));
    memory = device.allocate(layout.bytes());
    numbers = array_at<std::int32_t>(memory, numbers_at);
    keys = array_at<std::int32_t>(memory, keys_at);
    sorted_keys = array_at<std::int32_t>(memory, sorted_keys_at);
    order = array_at<std::int32_t>(memory, order_at);
    taken = array_at<unsigned char>(memory, taken_at);
    members = array_at<std::int32_t>(memory, members_at);
    blocks = array_at<std::int32_t>(memory, blocks_at);
    count = array_at<std::int32_t>(memory, count_at);
    common = array_at<std::int32_t>(memory, common_at);
    device.fill_bytes(taken, 0, units);
  }

  Buffer memory;
  std::int32_t *numbers, *keys, *sorted_keys, *order;
  unsigned char* taken;
  std::int32_t* members;  // of groups, kHeight each
  std::int32_t* blocks;   // of groups
  std::int32_t* count;    // groups
  std::int32_t* common;
};

// Pairs of unit rows, in `to.members` and `to.count`.
void pair_units(const Pattern& pattern, std::int64_t width, Sorter& sort, const UnitArrays& to,
                Device& device) {
  const std::int64_t units = pattern.units();
  const cudaStream_t stream = stream_of(device);
  measure_units<<<ctas_for(units), kThreads, 0, stream>>>(pattern, to.numbers, to.keys);
  SPMMBENCH_CUDA_LAUNCHED();
  sort(to.keys, to.sorted_keys, to.numbers, to.order);
  if (width > 0) {
    compare_units<<<ctas_for(units * width), kThreads, 0, stream>>>(pattern, to.order, width,
                                                                    to.common);
    SPMMBENCH_CUDA_LAUNCHED();
  }
  const std::int64_t threads = (width + kWarpLanes - 1) / kWarpLanes * kWarpLanes;
  take_pairs<<<1,
               static_cast<unsigned>(std::clamp<std::int64_t>(threads, kWarpLanes, kPairThreads)),
               0, stream>>>(to.order, units, width, to.common, to.taken, to.members, to.count);
  SPMMBENCH_CUDA_LAUNCHED();
}

// The groups in their order, in `memory` and on the host.
SortedGroups sort_groups(const Pattern& pattern, int unit_k, Sorter& sort, const UnitArrays& from,
                         Buffer& memory, BcsrGroupIndex& index, Device& device) {
  constexpr int kHeight = BcsrGroupIndex::kHeight;
  const std::int64_t units = pattern.units();
  const cudaStream_t stream = stream_of(device);
  count_steps<<<ctas_for(units * kWarpLanes), kThreads, 0, stream>>>(
      pattern, unit_k, from.members, from.count, from.numbers, from.keys, from.blocks);
  SPMMBENCH_CUDA_LAUNCHED();
  sort(from.keys, from.sorted_keys, from.numbers, from.order);
  std::vector<std::int32_t> host(1 + (units + 1) + units * (kHeight + 1));
  memory = device.allocate(host.size() * sizeof(std::int32_t));
  auto* const count = memory.as<std::int32_t>();
  const SortedGroups sorted{count, count + 1, count + 1 + (units + 1),
                            count + 1 + (units + 1) + units * kHeight};
  arrange_groups<<<1, kSumThreads, 0, stream>>>(from.order, from.sorted_keys, units, from.members,
                                                from.blocks, from.count, sorted);
  SPMMBENCH_CUDA_LAUNCHED();
  device.download(host.data(), count, memory.bytes());
  const std::int64_t groups = host.front();
  const auto part = [&](const std::int32_t* at, std::int64_t size) {
    const auto begin = host.begin() + (at - count);
    return std::vector<std::int32_t>(begin, begin + size);
  };
  index.step_ptr = part(sorted.step_ptr, groups + 1);
  index.unit_row = part(sorted.members, groups * kHeight);
  index.block_count = part(sorted.blocks, groups);
  return sorted;
}

void build_groups(const Pattern& pattern, int unit_k, BcsrGrouping grouping, DeviceBlocks& out,
                  Device& device) {
  const std::int64_t units = pattern.units();
  if (units == 0) return;
  const bool compares = grouping == BcsrGrouping::overlap;
  const std::int64_t width = compares ? std::min(units - 1, BcsrGroups::candidates(units)) : 0;
  const UnitArrays arrays(units, units * width, device);
  Sorter sort(units, device);
  if (compares) {
    pair_units(pattern, width, sort, arrays, device);
  } else {
    pair_neighbours<<<ctas_for(units), kThreads, 0, stream_of(device)>>>(units, arrays.members,
                                                                         arrays.count);
    SPMMBENCH_CUDA_LAUNCHED();
  }
  Buffer memory;
  const SortedGroups sorted =
      sort_groups(pattern, unit_k, sort, arrays, memory, out.groups, device);
  const std::int64_t groups = out.groups.groups(), steps = out.groups.step_ptr.back();
  out.steps = device.allocate(2 * steps * sizeof(BcsrStep));
  write_steps<<<ctas_for(groups * kWarpLanes), kThreads, 0, stream_of(device)>>>(
      pattern, unit_k, sorted.members, sorted.step_ptr, groups, steps, out.steps.as<BcsrStep>());
  SPMMBENCH_CUDA_LAUNCHED();
  device.synchronize();  // before the sources go
}

std::size_t pattern_bytes(const Pattern& pattern) {
  constexpr std::int64_t kBytesOfWord = sizeof(std::uint32_t) + sizeof(std::int32_t);
  return static_cast<std::size_t>(pattern.block_rows() * pattern.words() * kBytesOfWord);
}

BcsrPattern sizes_of(const DeviceCsr& a, int bm, int bk) {
  BcsrPattern out;
  out.rows = a.rows;
  out.cols = a.cols;
  out.nnz = a.nnz;
  out.bm = bm;
  out.bk = bk;
  return out;
}

// The column blocks: `places` of them, those that are none with -1.
Buffer list_columns(const Pattern& pattern, std::int64_t places, std::int64_t width,
                    Device& device) {
  constexpr unsigned char kNone = 0xFF;
  Buffer out = device.allocate(places * sizeof(std::int32_t));
  if (width > 0) device.fill_bytes(out.data(), kNone, out.bytes());
  list_blocks<<<ctas_for(pattern.block_rows() * pattern.words()), kThreads, 0, stream_of(device)>>>(
      pattern, width, out.as<std::int32_t>());
  SPMMBENCH_CUDA_LAUNCHED();
  return out;
}

BlockCounts counts_of(const DeviceCsr& a, int bm, int bk) {
  const Pattern pattern{a.rows, a.cols, bm, bk};
  if (a.nnz == 0) return {};
  const Scratch scratch(sizeof(BlockCounts));
  mark_blocks<false><<<static_cast<unsigned>(pattern.block_rows()), kMarkThreads>>>(
      a, pattern, scratch.as<BlockCounts>());
  SPMMBENCH_CUDA_LAUNCHED();
  return scratch.read<BlockCounts>();
}

}  // namespace

DeviceBcsr build_bcsr(const DeviceCsr& a, int block, Device& device) {
  DeviceBcsr out;
  out.sizes = sizes_of(a, block, block);
  Buffer memory;
  const Pattern pattern = find_blocks(a, block, block, memory, out.totals, device);
  out.block_row_ptr = device.allocate((pattern.block_rows() + 1) * sizeof(std::int32_t));
  SPMMBENCH_CUDA(cudaMemcpyAsync(out.block_row_ptr.data(), pattern.block_row_ptr,
                                 out.block_row_ptr.bytes(), cudaMemcpyDeviceToDevice,
                                 stream_of(device)));
  out.block_col = list_columns(pattern, out.totals.blocks, 0, device);
  out.values = fill_values(a, pattern, out.totals.blocks, 0, device);
  device.synchronize();  // before `memory` goes
  return out;
}

DeviceBcsr build_blocked_ell(const DeviceCsr& a, int block, Device& device) {
  DeviceBcsr out;
  out.sizes = sizes_of(a, block, block);
  Buffer memory;
  const Pattern pattern = find_blocks(a, block, block, memory, out.totals, device);
  out.width = std::max<std::int64_t>(1, out.totals.longest);
  const std::int64_t places = pattern.block_rows() * out.width;
  out.block_col = list_columns(pattern, places, out.width, device);
  out.values = fill_values(a, pattern, places, out.width, device);
  device.synchronize();  // before `memory` goes
  return out;
}

DeviceBlocks build_blocks(const DeviceCsr& a, int bm, int bk, int unit_k, BcsrGrouping grouping,
                          Device& device) {
  DeviceBlocks out;
  out.sizes = sizes_of(a, bm, bk);
  Buffer memory;
  const Pattern pattern = find_blocks(a, bm, bk, memory, out.totals, device);
  out.values = fill_values(a, pattern, out.totals.blocks, 0, device);
  build_groups(pattern, unit_k, grouping, out, device);
  device.synchronize();  // before `memory` goes
  return out;
}

bool pattern_fits(std::int64_t rows, std::int64_t cols, int block) {
  constexpr std::size_t kMost = std::size_t{1} << 32;
  return pattern_bytes({rows, cols, block, block}) <= kMost;
}

std::size_t scratch_bytes(std::int64_t rows, std::int64_t cols, int bm, int bk) {
  const Pattern pattern{rows, cols, bm, bk};
  const std::int64_t units = pattern.units();
  constexpr std::int64_t kBytesOfUnit = 64;  // UnitArrays and SortedGroups have twelve numbers
  const std::int64_t pairs =
      units * std::min(std::max<std::int64_t>(units - 1, 0), BcsrGroups::candidates(units));
  return pattern_bytes(pattern) +
         static_cast<std::size_t>(units * kBytesOfUnit +
                                  pairs * std::int64_t{sizeof(std::int32_t)});
}

std::int64_t count_blocks(const DeviceCsr& a, int bm, int bk) {
  return static_cast<std::int64_t>(counts_of(a, bm, bk).all);
}

std::int64_t widest_block_row(const DeviceCsr& a, int bm, int bk) {
  return static_cast<std::int64_t>(counts_of(a, bm, bk).widest);
}

}  // namespace spmmbench::async_bcsr
