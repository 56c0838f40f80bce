// Builds the slices of A on the device. A row belongs to one of seven classes: too long for a
// slice, or with 32, 16 .. 1 places, in the order in which slices take them.
//
//   count_rows      rows, entries and parts of each class in every tile of rows; the CTA that
//                   arrives last adds up those of the tiles before, finds where each class begins,
//                   and tells the host
//   place_rows      sorts the rows of a tile by class and puts them behind those of earlier tiles
//   describe        a warp for each slice: which rows it has, and where its entries begin
//   move_entries    a warp for each slice: its entries, step by step
//
// Rows keep their order within a class, so what is built does not depend on the tiles. Memory is
// taken by upper bounds, so that the host need not wait for the counts.

#include <cuda_runtime.h>

#include <algorithm>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>

#include "common/dependent_launch.hpp"
#include "common/device_arrays.hpp"
#include "common/memory_layout.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/told_to_host.hpp"
#include "jagged_slices/device_build.hpp"
#include "jagged_slices/device_classes.cuh"
#include "jagged_slices/device_entries.cuh"

namespace spmmbench::jagged {
namespace {

using LongRow = JaggedSlices::LongRow;

// What place_rows makes of the sorted rows.
struct Sorted {
  std::int32_t* rows;
  std::int64_t* entries;  // stored before each of them
  LongRow* long_rows;
  std::int32_t* part_of;
};

using Sort = cub::BlockRadixSort<unsigned, kThreads, kPerThread, int>;
using Scan = cub::BlockScan<std::int64_t, kThreads>;

union Temporary {
  typename Sort::TempStorage sort;
  typename Scan::TempStorage scan;
};

// A tile of rows: arrays in shared memory. If these were members of one struct there, the compiler
// would spill registers.
struct Tile {
  std::int32_t* lengths;   // [kTile], in the order of `Rows`; -1: no row
  unsigned char* classes;  // [kTile], of the sorted rows
  int* first;              // [kClasses]: where each class begins among them
  std::int64_t* entries;   // [kClasses]: of the sorted rows before that
};

// The sorted rows of a thread.
struct OwnRows {
  unsigned class_of[kPerThread];
  int item[kPerThread];              // their places before they were sorted
  std::int64_t entries[kPerThread];  // of the tile's sorted rows before each
};

// Sorts a tile by class and finds where each class begins. All threads of the CTA call it.
__device__ void sort_tile(const Rows& in, std::int64_t first_place, Temporary& temporary,
                          const Tile& tile, OwnRows& sorted) {
  for (int i = static_cast<int>(threadIdx.x); i < kTile; i += kThreads)
    tile.lengths[i] = first_place + i < in.count ? in.length(in.at(first_place + i)) : -1;
  __syncthreads();
  const int own = static_cast<int>(threadIdx.x) * kPerThread;
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    sorted.item[i] = own + i;
    sorted.class_of[i] = tile.lengths[own + i] < 0 ? kClasses : in.class_of(tile.lengths[own + i]);
  }
  Sort(temporary.sort).Sort(sorted.class_of, sorted.item, 0, kClassBits);
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    sorted.entries[i] = max(tile.lengths[sorted.item[i]], 0);
    tile.classes[own + i] = static_cast<unsigned char>(sorted.class_of[i]);
  }
  Scan(temporary.scan).ExclusiveSum(sorted.entries, sorted.entries);
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const int at = own + i;
    const unsigned c = sorted.class_of[i];
    if (c == kClasses || (at > 0 && tile.classes[at - 1] == c)) continue;
    tile.first[c] = at;
    tile.entries[c] = sorted.entries[i];
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads)
    place_rows(Rows in, const Totals* before, const Classes* begins, const std::int32_t* row_ids,
               Sorted out) {
  const Classes& first = *begins;
  __shared__ Temporary temporary;
  __shared__ std::int32_t lengths[kTile];
  __shared__ unsigned char classes[kTile];
  __shared__ int tile_first[kClasses];
  __shared__ std::int64_t tile_entries[kClasses];
  const Tile tile{lengths, classes, tile_first, tile_entries};

  const std::int64_t first_place = std::int64_t{blockIdx.x} * kTile;
  const int own = static_cast<int>(threadIdx.x) * kPerThread;
  OwnRows sorted;
  sort_tile(in, first_place, temporary, tile, sorted);
  const Totals& earlier = before[blockIdx.x];
  std::int64_t to[kPerThread], parts[kPerThread], part[kPerThread];
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    parts[i] = 0;
    const unsigned c = sorted.class_of[i];
    if (c == kClasses) continue;
    to[i] = first.row[c] + static_cast<std::int64_t>(earlier.rows[c]) + own + i - tile.first[c];
    out.rows[to[i]] = in.at(first_place + sorted.item[i]);
    out.entries[to[i]] = first.entry[c] + static_cast<std::int64_t>(earlier.entries[c]) +
                         sorted.entries[i] - tile.entries[c];
    if (c == kTooLong) parts[i] = in.shape.parts_of(tile.lengths[sorted.item[i]]);
  }
  if (first.row[kTooLong + 1] == 0) return;
  Scan(temporary.scan).ExclusiveSum(parts, part);
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    if (parts[i] == 0) continue;
    const std::int32_t row = in.at(first_place + sorted.item[i]);
    part[i] += static_cast<std::int64_t>(earlier.parts);
    out.long_rows[to[i]] = {row_ids == nullptr ? row : row_ids[row],
                            static_cast<std::int32_t>(part[i]),
                            static_cast<std::int32_t>(parts[i])};
    for (std::int64_t p = 0; p < parts[i]; ++p)
      out.part_of[part[i] + p] = static_cast<std::int32_t>(to[i]);
  }
}

// What `describe` writes. `first_columns` is null where all slices are packed, or none.
struct Described {
  Slice* slices;
  std::uint16_t* row_lengths;
  std::int32_t* row_ids;
  RowOfPlace* rows;  // of every place
  std::int32_t* first_columns;
  int* unpacked;  // set where a slice with entries cannot be packed
  bool packs;
};

// A row of a slice, or its part of a row that is too long.
struct RowOfLane {
  std::int64_t begin = 0;   // of its entries in A
  std::int64_t entry = 0;   // entries stored before it
  std::int32_t length = 0;  // 0: the lane has none
  std::int32_t target = -1;
};

// Lane `lane` of slice `index`, which is the `of_class`-th of class `c` and has that many rows.
__device__ RowOfLane row_of_lane(const Rows& in, const Classes& first, const Sorted& sorted,
                                 const std::int32_t* row_ids, int c, std::int64_t index,
                                 std::int64_t of_class, int rows, int lane) {
  RowOfLane out;
  if (c == kTooLong) {
    const auto part = static_cast<std::int32_t>(index / JaggedShape::kTeam);
    const LongRow& of_part = sorted.long_rows[sorted.part_of[part]];
    const std::int32_t row = sorted.rows[sorted.part_of[part]];
    const std::int64_t whole = in.length(row);
    const std::int64_t shares = std::int64_t{of_part.parts} * JaggedShape::kTeam;
    const std::int64_t share = index - std::int64_t{of_part.first_part} * JaggedShape::kTeam;
    const std::int64_t from = whole * share / shares;
    if (lane == 0) out.length = static_cast<std::int32_t>(whole * (share + 1) / shares - from);
    out.begin = in.row_ptr[row] + from;
    out.entry = sorted.entries[sorted.part_of[part]] + from;
  } else if (lane < rows && first.row[c] + of_class * rows + lane < first.row[c + 1]) {
    const std::int64_t place = first.row[c] + of_class * rows + lane;
    const std::int32_t row = sorted.rows[place];
    out.begin = in.row_ptr[row];
    out.length = in.length(row);
    out.entry = sorted.entries[place];
    out.target = row_ids == nullptr ? row : row_ids[row];
  }
  return out;
}

// Whether the columns of a slice are close enough to be packed, which is noted in `out`.
__device__ bool note_packed(const RowOfLane& own, const std::int32_t* col_idx, std::int64_t index,
                            int lane, const Described& out) {
  const bool has = own.length > 0;
  if (out.first_columns == nullptr) return out.packs && __any_sync(kAllLanes, has) != 0;
  const int least = __reduce_min_sync(kAllLanes, has ? col_idx[own.begin] : INT32_MAX);
  const int most = __reduce_max_sync(kAllLanes, has ? col_idx[own.begin + own.length - 1] : -1);
  const bool packed = most >= 0 && most - least < packed_span(sizeof(std::uint16_t));
  if (lane == 0) out.first_columns[index] = packed ? least : 0;
  if (lane == 0 && most >= 0 && !packed) *out.unpacked = 1;
  return packed;
}

// Of `count` slices, those past the last have no steps.
__global__ void __launch_bounds__(kSliceThreads)
    describe(Rows in, const std::int32_t* col_idx, const Classes* begins, std::int64_t count,
             const std::int32_t* row_ids, Sorted sorted, Described out) {
  const Classes& first = *begins;
  const std::int64_t index = std::int64_t{blockIdx.x} * (kSliceThreads / 32) + threadIdx.x / 32;
  if (index >= count) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (index >= first.slice[kClasses]) {
    if (lane == 0) out.slices[index] = Slice{};
    return;
  }
  int c = 0;
  while (index >= first.slice[c + 1]) ++c;
  const int rows = c == kTooLong ? 1 : rows_of_slice(c);
  const std::int64_t of_class = index - first.slice[c];
  const std::int64_t slot = first.slot[c] + of_class * rows;
  const RowOfLane own = row_of_lane(in, first, sorted, row_ids, c, index, of_class, rows, lane);

  const int longest = __reduce_max_sync(kAllLanes, own.length);
  const std::int32_t first_target = __shfl_sync(kAllLanes, own.target, 0);
  const bool in_order = own.target >= 0 && own.target == first_target + lane;
  const bool consecutive = __all_sync(kAllLanes, lane >= rows || in_order) != 0;
  const int log2_places = in.shape.log2_places() - (c == kTooLong ? 0 : c - 1);
  const bool packed = note_packed(own, col_idx, index, lane, out);
  if (lane < rows) {
    out.row_lengths[slot + lane] = static_cast<std::uint16_t>(own.length);
    out.row_ids[slot + lane] = own.target;
  }
  const int row_of_place = lane >> log2_places;
  const RowOfPlace row(__shfl_sync(kAllLanes, own.begin, row_of_place),
                       __shfl_sync(kAllLanes, own.length, row_of_place));
  if (lane < in.shape.places) out.rows[index * in.shape.places + lane] = row;
  if (lane != 0) return;
  Slice slice{};
  slice.first_entry = static_cast<std::uint64_t>(own.entry);
  slice.steps = static_cast<std::uint64_t>(JaggedShape::steps_of(longest, log2_places));
  slice.log2_places = static_cast<std::uint64_t>(log2_places);
  slice.packed = packed ? 1 : 0;
  slice.first_row = static_cast<std::int32_t>(slot);
  slice.target = c == kTooLong
                     ? Slice::kListed - 1 - static_cast<std::int32_t>(index / JaggedShape::kTeam)
                 : consecutive ? first_target
                               : Slice::kListed;
  out.slices[index] = slice;
}

__global__ void __launch_bounds__(kThreads)
    find_longest(const std::int64_t* row_ptr, std::int64_t rows, int* longest) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int length = row < rows ? static_cast<int>(row_ptr[row + 1] - row_ptr[row]) : 0;
  const int of_warp = __reduce_max_sync(kAllLanes, length);
  if (threadIdx.x % 32 == 0) atomicMax(longest, of_warp);
}

unsigned ctas_for(std::int64_t count, int per_cta) {
  return static_cast<unsigned>((count + per_cta - 1) / per_cta);
}

// No matrix of this many rows and entries has more.
struct Most {
  std::int64_t long_rows, parts, slices, slots;

  Most(std::int64_t rows, std::int64_t nnz, const JaggedShape& shape) {
    long_rows = std::min(rows, nnz / shape.whole());
    parts = long_rows + nnz / (JaggedShape::kTeam * shape.whole());
    // A row that takes more than one place has over most_steps / 2 entries for each.
    const std::int64_t places = rows + 2 * nnz / shape.most_steps;
    const std::int64_t of_teams = parts * JaggedShape::kTeam;
    slices = of_teams + std::min(rows, places / shape.places) + kClasses + 1;
    slots = of_teams + rows + (1 << kClasses);
  }
};

void allocate_index(const Most& most, bool with_columns, Device& device, DeviceSlices& out) {
  MemoryLayout layout;
  const std::size_t slices = layout.add(most.slices * sizeof(Slice));
  const std::size_t row_lengths = layout.add(most.slots * sizeof(std::uint16_t));
  const std::size_t row_ids = layout.add(most.slots * sizeof(std::int32_t));
  const std::size_t part_of = layout.add(most.parts * sizeof(std::int32_t));
  const std::size_t long_rows = layout.add(most.long_rows * sizeof(LongRow));
  const std::size_t first_columns =
      layout.add(with_columns ? most.slices * sizeof(std::int32_t) : 0);
  out.index = device.allocate(layout.bytes());
  out.slices = array_at<Slice>(out.index, slices);
  out.row_lengths = array_at<std::uint16_t>(out.index, row_lengths);
  out.row_ids = array_at<std::int32_t>(out.index, row_ids);
  out.part_of = array_at<std::int32_t>(out.index, part_of);
  out.long_rows = array_at<LongRow>(out.index, long_rows);
  if (with_columns) out.first_columns = array_at<std::int32_t>(out.index, first_columns);
  out.rows = device.allocate(most.slices * out.shape.places * sizeof(RowOfPlace));
}

void allocate_entries(const DeviceCsr& a, bool packed, bool unpacked, Device& device,
                      DeviceSlices& out) {
  MemoryLayout layout;
  const auto count = static_cast<std::size_t>(a.nnz);
  const std::size_t packed_at = layout.add(packed ? count * sizeof(std::uint32_t) : 0);
  const std::size_t columns = layout.add(unpacked ? count * sizeof(std::int32_t) : 0);
  const std::size_t values = layout.add(unpacked ? count * bytes_of(a.value_type) : 0);
  out.entries = device.allocate(layout.bytes());
  if (packed) out.packed = array_at<std::uint32_t>(out.entries, packed_at);
  if (!unpacked) return;
  out.col_idx = array_at<std::int32_t>(out.entries, columns);
  out.values = array_at<void>(out.entries, values);
}

template <class Bits>
Stored<Bits> stored(const DeviceSlices& slices) {
  return {slices.packed, slices.col_idx, static_cast<Bits*>(slices.values)};
}

template <class Move>
void launch_move(const DeviceSlices& slices, const typename Move::Arguments& arguments,
                 Stream stream) {
  launch_dependent(move_entries<Move>, dim3(ctas_for(slices.count, kSliceThreads / 32)),
                   dim3(kSliceThreads), 0, stream, Move::kWaits && kernels_wait(), slices.slices,
                   slices.count, slices.rows.as<RowOfPlace>(), slices.shape.log2_places(),
                   arguments);
}

}  // namespace

DeviceSlices build_slices(const DeviceCsr& a, const std::int32_t* row_order, std::int64_t row_count,
                          const std::int32_t* row_ids, const JaggedShape& shape, bool packs,
                          Device& device) {
  const cudaStream_t stream = stream_of(device);
  const Rows rows{a.row_ptr, row_order, row_count, shape};
  const unsigned tiles = std::max(1U, ctas_for(row_count, kTile));
  const ToldToHost told(device);
  const Most most(row_count, a.nnz, shape);
  DeviceSlices out;
  out.shape = shape;
  out.row_count = row_count;
  const std::size_t value_bytes = bytes_of(a.value_type);
  allocate_index(most, packs && value_bytes == 2, device, out);
  MemoryLayout layout;
  const std::size_t totals_at = layout.add(tiles * sizeof(Totals));
  const std::size_t classes_at = layout.add(sizeof(Classes));
  const std::size_t unpacked_at = layout.add(sizeof(int));
  const std::size_t rows_at = layout.add(row_count * sizeof(std::int32_t));
  const std::size_t entries_at = layout.add(row_count * sizeof(std::int64_t));
  const Buffer scratch = device.allocate(layout.bytes());
  auto* const totals = array_at<Totals>(scratch, totals_at);
  auto* const classes = array_at<Classes>(scratch, classes_at);
  const Sorted sorted{array_at<std::int32_t>(scratch, rows_at),
                      array_at<std::int64_t>(scratch, entries_at), out.long_rows, out.part_of};
  count_rows<<<tiles, kThreads, 0, stream>>>(rows, totals, classes, told.as<Classes>(),
                                             told.arrivals());
  SPMMBENCH_CUDA_LAUNCHED();
  const auto take_counts = [&] {
    device.synchronize();
    const auto& first = told.read<Classes>();
    out.count = first.slice[kClasses];
    out.parts = first.slice[kTooLong + 1] / JaggedShape::kTeam;
    out.long_row_count = first.row[kTooLong + 1];
  };
  // This many CTAs of slices that there are not take less time than the host takes to wait.
  constexpr std::int64_t kFewSlices = 1 << 15;
  out.count = most.slices;
  if (most.slices > kFewSlices) take_counts();
  // Columns of a narrow matrix fit in any case.
  auto* const unpacked = array_at<int>(scratch, unpacked_at);
  const bool may_be_far = out.first_columns != nullptr && a.cols > packed_span(value_bytes);
  if (may_be_far) device.fill_bytes(unpacked, 0, sizeof *unpacked);
  place_rows<<<tiles, kThreads, 0, stream>>>(rows, totals, classes, row_ids, sorted);
  SPMMBENCH_CUDA_LAUNCHED();
  if (out.count > 0) {
    describe<<<ctas_for(out.count, kSliceThreads / 32), kSliceThreads, 0, stream>>>(
        rows, a.col_idx, classes, out.count, row_ids, sorted,
        Described{out.slices, out.row_lengths, out.row_ids, out.rows.as<RowOfPlace>(),
                  out.first_columns, unpacked, packs});
    SPMMBENCH_CUDA_LAUNCHED();
  }
  int some_unpacked = packs ? 0 : 1;
  if (may_be_far) device.download(&some_unpacked, unpacked, sizeof some_unpacked);
  allocate_entries(a, packs, some_unpacked != 0, device, out);
  visit_element(a.value_type, [&](auto element) {
    using Bits = typename decltype(element)::Bits;
    if (out.count > 0 && a.nnz > 0)
      launch_move<Build<Bits>>(
          out,
          {a.col_idx, static_cast<const Bits*>(a.values), out.first_columns, stored<Bits>(out)},
          device.stream());
  });
  take_counts();
  return out;
}

void replace_values(const NewValues& values, const DeviceSlices& slices, Stream stream) {
  if (slices.entries.bytes() == 0) return;
  visit_new_values(values, [&](auto from, auto to) {
    using From = decltype(from);
    using To = decltype(to);
    launch_move<Replace<From, To>>(slices,
                                   {static_cast<const typename From::Bits*>(values.data),
                                    values.precision, stored<typename To::Bits>(slices)},
                                   stream);
  });
}

void write_back(const DeviceSlices& slices, void* a_values, ElementType type, Stream stream) {
  if (slices.entries.bytes() == 0) return;
  visit_element(type, [&](auto element) {
    using Bits = typename decltype(element)::Bits;
    launch_move<WriteBack<Bits>>(slices, {stored<Bits>(slices), static_cast<Bits*>(a_values)},
                                 stream);
  });
}

std::int64_t longest_row(const DeviceCsr& a, Device& device) {
  if (a.rows == 0) return 0;
  const Buffer found = device.allocate(sizeof(int));
  device.fill_bytes(found.data(), 0, found.bytes());
  find_longest<<<ctas_for(a.rows, kThreads), kThreads, 0, stream_of(device)>>>(a.row_ptr, a.rows,
                                                                               found.as<int>());
  SPMMBENCH_CUDA_LAUNCHED();
  int longest = 0;
  device.download(&longest, found.data(), sizeof longest);
  return longest;
}

}  // namespace spmmbench::jagged
