// Builds gap slices on the device. A warp walks a row, 32 nonzeros at a time, and a scan tells the
// place of each among the entries of its lane:
//
//   count_entries   what decides about the layout
//   count_groups    groups of the longest lane of each row, by which rows are sorted
//   slice_groups    groups of each slice, whose sums come to the host
//   fill            the words of each row
//   find_starts     a warp for each range: columns before those that begin within a slice

#include "common/device_arrays.hpp"
#include "gap_slices/device_build.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "common/memory_layout.hpp"
#include "common/scratch.hpp"
#include "gpu/cuda_check.hpp"

namespace spmmbench::gap_slices {
namespace {

using Slices = GapSlices;

constexpr unsigned kAllLanes = 0xFFFFFFFFU;
constexpr int kThreads = 256, kWarpLanes = 32;

__device__ int lane_of_warp() { return static_cast<int>(threadIdx.x) % kWarpLanes; }
__device__ std::int64_t warp_of_grid() {
  return (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) / kWarpLanes;
}

unsigned ctas_for(std::int64_t threads) {
  return static_cast<unsigned>(std::max<std::int64_t>(1, (threads + kThreads - 1) / kThreads));
}
struct Counted {
  unsigned long long zeros_4, zeros_8;  // on the way to nonzeros
  unsigned long long longest_row;
};

__global__ void __launch_bounds__(kThreads) count_entries(DeviceCsr a, Counted* counted) {
  constexpr int kMost4 = Slices::Shape{.gap_bits = 4}.most_gap();
  constexpr int kMost8 = Slices::Shape{.gap_bits = 8}.most_gap();
  const std::int64_t row = warp_of_grid();
  if (row >= a.rows) return;
  const std::int64_t begin = a.row_ptr[row], end = a.row_ptr[row + 1];
  int zeros_4 = 0, zeros_8 = 0;
#pragma unroll 4
  for (std::int64_t at = begin + lane_of_warp(); at < end; at += kWarpLanes) {
    const int gap = __ldg(a.col_idx + at) - (at > begin ? __ldg(a.col_idx + at - 1) : 0);
    zeros_4 += max(gap - 1, 0) / kMost4;
    zeros_8 += max(gap - 1, 0) / kMost8;
  }
  zeros_4 = __reduce_add_sync(kAllLanes, zeros_4);
  zeros_8 = __reduce_add_sync(kAllLanes, zeros_8);
  if (lane_of_warp() != 0) return;
  if (zeros_4 > 0) atomicAdd(&counted->zeros_4, static_cast<unsigned long long>(zeros_4));
  if (zeros_8 > 0) atomicAdd(&counted->zeros_8, static_cast<unsigned long long>(zeros_8));
  const auto length = static_cast<unsigned long long>(end - begin);
  if (length > __ldcg(&counted->longest_row)) atomicMax(&counted->longest_row, length);
}

// A nonzero among the entries of its lane.
struct Entry {
  bool is_there;
  int part;            // of the columns: the lane among those of the row
  std::int32_t place;  // of the entry
  int zeros;           // on the way to it, in the places before
  int gap;             // to it, from the last of these
};

// visit(entry of A, Entry) for the nonzeros of a row, from left to right. All lanes of a warp call
// it together, and visit all together.
template <class Visit>
__device__ void for_each_entry(const DeviceCsr& a, const Slices::Parts& parts, std::int64_t row,
                               const Visit& visit) {
  const std::int64_t begin = a.row_ptr[row], end = a.row_ptr[row + 1];
  const int lane = lane_of_warp(), most = parts.shape.most_gap();
  int last_part = -1;                       // of the nonzero before
  std::int32_t last_column = 0, taken = 0;  // its column, and places up to it
  for (std::int64_t first = begin; first < end; first += kWarpLanes) {
    Entry entry{};
    entry.is_there = first + lane < end;
    const std::int32_t column = entry.is_there ? __ldg(a.col_idx + first + lane) : 0;
    entry.part = entry.is_there ? static_cast<int>(static_cast<std::uint32_t>(column) /
                                                   static_cast<std::uint32_t>(parts.part_cols))
                                : -1;
    const unsigned alike = __match_any_sync(kAllLanes, entry.part);
    const int first_lane = __ffs(static_cast<int>(alike)) - 1;  // of the part
    std::int32_t before = __shfl_up_sync(kAllLanes, column, 1);
    if (lane == first_lane)
      before = entry.part == last_part
                   ? last_column
                   : static_cast<std::int32_t>(parts.first_column(max(entry.part, 0)));
    const int whole_gap = column - before;
    entry.zeros = entry.is_there ? max(whole_gap - 1, 0) / most : 0;
    entry.gap = whole_gap - entry.zeros * most;
    const int own = entry.is_there ? 1 + entry.zeros : 0;
    int sum = own;  // up to this lane
#pragma unroll
    for (int distance = 1; distance < kWarpLanes; distance *= 2) {
      const int below = __shfl_up_sync(kAllLanes, sum, distance);
      if (lane >= distance) sum += below;
    }
    const int before_part = __shfl_sync(kAllLanes, sum - own, first_lane);
    entry.place = sum - before_part - 1 + (entry.part == last_part ? taken : 0);
    visit(first + lane, entry);
    const int last = static_cast<int>(min(end - first, std::int64_t{kWarpLanes})) - 1;
    last_part = __shfl_sync(kAllLanes, entry.part, last);
    last_column = __shfl_sync(kAllLanes, column, last);
    taken = __shfl_sync(kAllLanes, entry.place, last) + 1;
  }
}

__global__ void __launch_bounds__(kThreads)
    count_groups(DeviceCsr a, Slices::Parts parts, std::int32_t* rows, std::int32_t* groups) {
  const std::int64_t row = warp_of_grid();
  if (row >= a.rows) return;
  int longest = 0;
  for_each_entry(a, parts, row, [&](std::int64_t, const Entry& entry) {
    if (entry.is_there) longest = max(longest, entry.place + 1);
  });
  longest = __reduce_max_sync(kAllLanes, longest);
  if (lane_of_warp() != 0) return;
  rows[row] = static_cast<std::int32_t>(row);
  groups[row] = (longest + Slices::kGroup - 1) / Slices::kGroup;
}

// The groups of each slice of the sorted rows; 0 behind the last, where the scan leaves the sum.
__global__ void slice_groups(const std::int32_t* sorted, std::int64_t slices, int rows,
                             std::int32_t* groups) {
  const std::int64_t slice = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (slice <= slices) groups[slice] = slice < slices ? sorted[slice * rows] : 0;
}

// Words that gaps and values are put into; they are zero.
struct Words {
  Slices::Shape shape;
  std::uint32_t* words;
  std::int64_t first_group;

  __device__ std::uint32_t* group_of(std::int32_t place) const {
    return words + (first_group + place / Slices::kGroup) * shape.group_words();
  }
  // `value`: 16 or 8 bits, as the shape has them.
  template <class Value>
  __device__ void put_value(int lane, std::int32_t place, Value value) const {
    constexpr int kInWord = sizeof(std::uint32_t) / sizeof(Value);
    const int at = place % Slices::kGroup;
    auto* const in_word =
        reinterpret_cast<Value*>(group_of(place) + Slices::value_word(shape, lane, at));
    in_word[at % kInWord] = value;
  }
  __device__ std::uint32_t* gap_word(int lane, std::int32_t place) const {
    return group_of(place) + Slices::gap_word(shape, lane, place % Slices::kGroup);
  }
  __device__ std::uint32_t shifted(int gap, std::int32_t place) const {
    return static_cast<std::uint32_t>(gap) << Slices::gap_shift(shape, place % Slices::kGroup);
  }
};

// Ors `bits` into the word, once for neighbouring lanes with the same one. All lanes call it
// together; null: nothing.
__device__ void or_into(std::uint32_t* word, std::uint32_t bits) {
  const int lane = lane_of_warp();
  const auto key = reinterpret_cast<std::uint64_t>(word);
#pragma unroll
  for (int distance = 1; distance < Slices::kGroup; distance *= 2) {
    const std::uint64_t above = __shfl_down_sync(kAllLanes, key, distance);
    const std::uint32_t their_bits = __shfl_down_sync(kAllLanes, bits, distance);
    if (lane + distance < kWarpLanes && above == key) bits |= their_bits;
  }
  const std::uint64_t below = __shfl_up_sync(kAllLanes, key, 1);
  if (word != nullptr && (lane == 0 || below != key)) atomicOr(word, bits);
}

template <class Value>
__global__ void __launch_bounds__(kThreads)
    fill(DeviceCsr a, Slices::Parts parts, const std::int32_t* slice_rows,
         const std::int32_t* slice_ptr, std::uint32_t* words) {
  const std::int64_t place_of_row = warp_of_grid();
  if (place_of_row >= a.rows) return;
  const Slices::Shape& shape = parts.shape;
  const Words to{shape, words, slice_ptr[place_of_row / shape.rows()]};
  const int first_lane = static_cast<int>(place_of_row % shape.rows()) * shape.row_lanes;
  const auto* const values = static_cast<const Value*>(a.values);
  for_each_entry(a, parts, slice_rows[place_of_row], [&](std::int64_t at, const Entry& entry) {
    const int lane = first_lane + entry.part;
    for (int zero = 0; zero < entry.zeros; ++zero) {
      const std::int32_t place = entry.place - entry.zeros + zero;
      atomicOr(to.gap_word(lane, place), to.shifted(shape.most_gap(), place));
    }
    if (entry.is_there) to.put_value(lane, entry.place, __ldg(values + at));
    or_into(entry.is_there ? to.gap_word(lane, entry.place) : nullptr,
            entry.is_there ? to.shifted(entry.gap, entry.place) : 0);
  });
}

__global__ void __launch_bounds__(kThreads)
    find_starts(Slices::Parts parts, const Slices::Range* ranges, std::int64_t count,
                const std::int32_t* slice_ptr, const std::uint32_t* words, std::int32_t* starts) {
  const std::int64_t index = warp_of_grid();
  if (index >= count) return;
  constexpr std::uint32_t kBytesOnes = 0x01010101U, kLowHalves = 0x0F0F0F0FU;
  const Slices::Shape& shape = parts.shape;
  const Slices::Range range = ranges[index];
  const int lane = lane_of_warp();
  auto column = static_cast<std::uint32_t>(parts.first_column(lane));
  const std::int32_t first = range.groups > 0 ? slice_ptr[range.first_slice] : range.first_group;
#pragma unroll 4
  for (std::int32_t group = first; group < range.first_group; ++group) {
    const std::uint32_t* const own =
        words + group * shape.group_words() + Slices::gap_word(shape, lane, 0);
    if (shape.gap_bits == 4) {
      const std::uint32_t halves = own[0];
      column = __dp4a(halves & kLowHalves, kBytesOnes, column);
      column = __dp4a(halves >> 4 & kLowHalves, kBytesOnes, column);
    } else {
      column = __dp4a(own[0], kBytesOnes, column);
      column = __dp4a(own[1], kBytesOnes, column);
    }
  }
  starts[index * kWarpLanes + lane] = static_cast<std::int32_t>(column);
}

__global__ void rename_rows(std::int32_t* rows, std::int64_t count, const std::int32_t* ids) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count && rows[i] >= 0) rows[i] = ids[rows[i]];
}

// Rows by falling number of groups, and the first group of each slice, there and on the host.
void cut_into_slices(const DeviceCsr& a, DeviceSlices& out, Device& device) {
  const cudaStream_t stream = stream_of(device);
  const int rows_of_slice = out.index.shape.rows();
  const std::int64_t slices = (a.rows + rows_of_slice - 1) / rows_of_slice;
  out.slice_rows = device.allocate(slices * rows_of_slice * sizeof(std::int32_t));
  out.slice_ptr = device.allocate((slices + 1) * sizeof(std::int32_t));
  device.fill_bytes(out.slice_rows.data(), 0xFF, out.slice_rows.bytes());  // -1: none
  auto* const sorted_rows = out.slice_rows.as<std::int32_t>();
  auto* const slice_ptr = out.slice_ptr.as<std::int32_t>();

  MemoryLayout layout;
  const std::size_t of_rows = a.rows * sizeof(std::int32_t);
  const std::size_t rows_at = layout.add(of_rows), groups_at = layout.add(of_rows),
                    sorted_at = layout.add(of_rows), slices_at = layout.add(out.slice_ptr.bytes());
  const int bits = std::bit_width(static_cast<std::uint64_t>(a.cols / Slices::kGroup + 1));
  const auto rows = static_cast<std::int32_t>(a.rows);
  std::size_t sort_bytes = 0, scan_bytes = 0;
  const auto sort = [&](void* temporary, std::int32_t* groups, std::int32_t* sorted,
                        std::int32_t* numbers) {
    SPMMBENCH_CUDA(cub::DeviceRadixSort::SortPairsDescending(
        temporary, sort_bytes, static_cast<const std::int32_t*>(groups), sorted,
        static_cast<const std::int32_t*>(numbers), sorted_rows, rows, 0, bits, stream));
  };
  const auto scan = [&](void* temporary, std::int32_t* groups) {
    SPMMBENCH_CUDA(cub::DeviceScan::ExclusiveSum(temporary, scan_bytes, groups, slice_ptr,
                                                 static_cast<std::int32_t>(slices + 1), stream));
  };
  sort(nullptr, nullptr, nullptr, nullptr);
  scan(nullptr, nullptr);
  const std::size_t temporary_at = layout.add(std::max({sort_bytes, scan_bytes, std::size_t{1}}));
  const Buffer scratch = device.allocate(layout.bytes());
  auto* const numbers = array_at<std::int32_t>(scratch, rows_at);
  auto* const groups = array_at<std::int32_t>(scratch, groups_at);
  auto* const sorted = array_at<std::int32_t>(scratch, sorted_at);
  auto* const of_slices = array_at<std::int32_t>(scratch, slices_at);
  auto* const temporary = array_at<void>(scratch, temporary_at);
  count_groups<<<ctas_for(a.rows * kWarpLanes), kThreads, 0, stream>>>(a, out.index.parts(),
                                                                       numbers, groups);
  SPMMBENCH_CUDA_LAUNCHED();
  sort(temporary, groups, sorted, numbers);
  slice_groups<<<ctas_for(slices + 1), kThreads, 0, stream>>>(sorted, slices, rows_of_slice,
                                                              of_slices);
  SPMMBENCH_CUDA_LAUNCHED();
  scan(temporary, of_slices);
  out.index.slice_ptr.resize(slices + 1);
  device.download(out.index.slice_ptr.data(), slice_ptr, out.slice_ptr.bytes());
}

}  // namespace

GapSlices::Counts count(const DeviceCsr& a) {
  const Scratch scratch(sizeof(Counted));
  count_entries<<<ctas_for(a.rows * kWarpLanes), kThreads>>>(a, scratch.as<Counted>());
  SPMMBENCH_CUDA_LAUNCHED();
  const auto counted = scratch.read<Counted>();
  return {a.rows,
          a.cols,
          a.nnz,
          static_cast<std::int64_t>(counted.longest_row),
          a.nnz + static_cast<std::int64_t>(counted.zeros_4),
          a.nnz + static_cast<std::int64_t>(counted.zeros_8)};
}

DeviceSlices build_slices(const DeviceCsr& a, std::span<const std::int32_t> row_ids,
                          const GapSlices::Shape& shape, int blocks, int warps, Device& device) {
  const cudaStream_t stream = stream_of(device);
  DeviceSlices out;
  out.index = GapSlices::header_of(a.rows, a.cols, a.nnz, shape);
  out.index.warps = warps;
  cut_into_slices(a, out, device);
  out.index.deal(blocks);
  out.block_ptr = device.upload(out.index.block_ptr);
  out.slice_warps = device.upload(out.index.slice_warps);
  out.ranges = device.upload(out.index.ranges);
  out.words = device.allocate(out.index.groups() * shape.group_words() * sizeof(std::uint32_t));
  out.starts = device.allocate(out.index.ranges.size() * kWarpLanes * sizeof(std::int32_t));
  device.fill_bytes(out.words.data(), 0, out.words.bytes());
  if (a.nnz > 0) {
    const auto fill_values = shape.value_bits == 8 ? fill<std::uint8_t> : fill<std::uint16_t>;
    fill_values<<<ctas_for(a.rows * kWarpLanes), kThreads, 0, stream>>>(
        a, out.index.parts(), out.slice_rows.as<std::int32_t>(), out.slice_ptr.as<std::int32_t>(),
        out.words.as<std::uint32_t>());
    SPMMBENCH_CUDA_LAUNCHED();
  }
  if (const std::int64_t ranges = std::ssize(out.index.ranges); ranges > 0) {
    find_starts<<<ctas_for(ranges * kWarpLanes), kThreads, 0, stream>>>(
        out.index.parts(), out.ranges.as<Slices::Range>(), ranges, out.slice_ptr.as<std::int32_t>(),
        out.words.as<std::uint32_t>(), out.starts.as<std::int32_t>());
    SPMMBENCH_CUDA_LAUNCHED();
  }
  Buffer ids;
  if (!row_ids.empty()) {
    ids = device.upload(row_ids);
    const auto places = static_cast<std::int64_t>(out.slice_rows.bytes() / sizeof(std::int32_t));
    rename_rows<<<ctas_for(places), kThreads, 0, stream>>>(out.slice_rows.as<std::int32_t>(),
                                                           places, ids.as<std::int32_t>());
    SPMMBENCH_CUDA_LAUNCHED();
  }
  device.synchronize();
  return out;
}

}  // namespace spmmbench::gap_slices
