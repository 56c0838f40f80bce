// Builds WCSR on the device, one CTA per window, in two passes over the matrix: count the
// distinct columns of each window, then rank every entry's column among them and put it in its box.
// Nothing is sorted: window/device_window.cuh.
//
// For a small matrix an allocation takes as long as the kernels. So there are only two allocations:
// for what the kernels read with the window pointers, and for the format.

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/memory_layout.hpp"
#include "gpu/cuda_check.hpp"
#include "spmmbench/error.hpp"
#include "window/device_build.hpp"
#include "window/device_window.cuh"

namespace spmmbench {
namespace {

using wcsr::Bitmap, wcsr::Csr, wcsr::Scan, wcsr::ScatteredColumns, wcsr::Window;
using wcsr::for_each_entry, wcsr::kSlab;

// Of this CTA's window.
__device__ std::int64_t first_place(const Csr& a) {
  return std::int64_t{blockIdx.x} * a.window_rows;
}

// Distinct columns of each window.
template <int kThreads>
__global__ void __launch_bounds__(kThreads) count_columns(Csr a, std::int32_t* counts) {
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ Window window;
  __shared__ ScatteredColumns<kThreads> scattered;
  read_window(a, first_place(a), window);
  const std::int32_t distinct = wcsr::count_distinct<kThreads>(a, window, shared, scattered);
  if (threadIdx.x == 0) counts[blockIdx.x] = distinct;
}

template <class Bits>
struct Boxes {
  const Bits* entries;  // values of the CSR matrix
  Bits* values;         // all zero
  __device__ void put(std::int64_t entry, std::int64_t at) const {
    values[at] = mark_entry(entries[entry]);
  }
};

// Where in the boxes each entry has its value.
struct Positions {
  std::uint32_t* of;
  __device__ void put(std::int64_t entry, std::int64_t at) const {
    of[entry] = static_cast<std::uint32_t>(at);
  }
};

struct Places {
  const std::int32_t* first_tile;  // of every window, and the end
  std::int32_t* window_ptr;
  std::int32_t* col_idx;
  int tile_columns;
};

template <int kThreads, class Entries>
__global__ void __launch_bounds__(kThreads) place_entries(Csr a, Places out, Entries entries) {
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ Window window;
  __shared__ ScatteredColumns<kThreads> scattered;
  __shared__ typename Scan<kThreads>::TempStorage scan;
  read_window(a, first_place(a), window);
  const std::int64_t tile = out.first_tile[blockIdx.x], end = out.first_tile[blockIdx.x + 1];
  if (threadIdx.x == 0) {
    out.window_ptr[blockIdx.x] = static_cast<std::int32_t>(tile);
    if (blockIdx.x + 1 == gridDim.x) out.window_ptr[gridDim.x] = static_cast<std::int32_t>(end);
  }
  std::int32_t* const col_idx = out.col_idx + tile * out.tile_columns;
  const auto pad_from = [&](std::int64_t distinct) {
    for (std::int64_t at = distinct + threadIdx.x; at < (end - tile) * out.tile_columns;
         at += kThreads)
      col_idx[at] = Wcsr::kPadding;
  };
  const std::int64_t first_line = tile * a.window_rows;
  const auto place = [&](std::int64_t entry, int row, std::int32_t rank) {
    const std::int64_t line =
        first_line + std::int64_t{rank / out.tile_columns} * a.window_rows + row;  // of a box
    entries.put(entry, line * out.tile_columns + rank % out.tile_columns);
  };

  if (window.is_scattered()) {
    const std::int32_t count = window.count();
    for_each_entry<kThreads>(a, window, [&](std::int64_t, int, std::int32_t column) {
      scattered.column[threadIdx.x] = column;
    });
    __syncthreads();
    const bool first = scattered.is_first(count);
    const std::int32_t own = scattered.column[threadIdx.x];
    pad_from(__syncthreads_count(first));
    if (!first) scattered.column[threadIdx.x] = std::numeric_limits<std::int32_t>::max();
    __syncthreads();
    for_each_entry<kThreads>(a, window, [&](std::int64_t entry, int row, std::int32_t) {
      std::int32_t rank = 0;
      for (std::int32_t i = 0; i < count; ++i) rank += scattered.column[i] < own;
      if (first) col_idx[rank] = own;
      place(entry, row, rank);
    });
    return;
  }
  std::int32_t rank = 0;
  for (std::int64_t first = window.first_column; first <= window.last_column;
       first += kSlab<kThreads>) {
    Bitmap<kThreads> bitmap(shared, static_cast<std::int32_t>(first), window.last_column);
    bitmap.clear();
    for_each_entry<kThreads>(a, window, [&](std::int64_t, int, std::int32_t column) {
      if (bitmap.covers(column)) bitmap.set(column);
    });
    __syncthreads();
    rank = bitmap.count(rank, scan,
                        [&](std::int32_t at, std::int32_t column) { col_idx[at] = column; });
    for_each_entry<kThreads>(a, window, [&](std::int64_t entry, int row, std::int32_t column) {
      if (bitmap.covers(column)) place(entry, row, bitmap.rank(column));
    });
    __syncthreads();
  }
  pad_from(rank);
}

template <class Bits>
__global__ void put_values(const Bits* entries, const std::uint32_t* positions, Bits* values,
                           std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) values[positions[i]] = mark_entry(entries[i]);
}

constexpr int kSumThreads = 1024;

// Over all windows.
struct Sums {
  std::int64_t gathered;        // distinct columns
  std::int32_t tiles, longest;  // in all, and of the longest window
};

// From the distinct columns of each window, in place: the first tile of each, and the end, repeated
// until an int4 is full. One CTA; `window_ptr` has room for these. 31 bits hold the tiles of 2^31 -
// 1 nonzeros: at most one in 16 and one per window.
__global__ void __launch_bounds__(kSumThreads)
    sum_tiles(std::int32_t* window_ptr, std::int64_t windows, int tile_columns, Sums* sums) {
  using Reduce = cub::BlockReduce<std::int64_t, kSumThreads>;
  __shared__ union {
    typename Scan<kSumThreads>::TempStorage scan;
    typename Reduce::TempStorage reduce;
  } shared;
  std::int32_t before = 0;
  std::int64_t columns = 0, longest = 0;
  for (std::int64_t from = 0; from <= windows; from += 4 * kSumThreads) {
    const std::int64_t own = from + 4 * threadIdx.x;
    auto* const at = reinterpret_cast<int4*>(window_ptr + own);
    const auto count = [&](int i) { return own + i < windows ? window_ptr[own + i] : 0; };
    const int4 distinct =
        own + 4 <= windows ? *at : make_int4(count(0), count(1), count(2), count(3));
    const int counted[4] = {distinct.x, distinct.y, distinct.z, distinct.w};
    int tiles[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      columns += counted[i];
      longest = max(longest, std::int64_t{counted[i]});
      tiles[i] = own + i < windows ? max(1, (counted[i] + tile_columns - 1) / tile_columns) : 0;
    }
    std::int32_t all = 0;
    Scan<kSumThreads>(shared.scan).ExclusiveSum(tiles, tiles, all);
    if (own <= windows)
      *at = make_int4(before + tiles[0], before + tiles[1], before + tiles[2], before + tiles[3]);
    before += all;
    __syncthreads();  // the scan's memory is used again
  }
  columns = Reduce(shared.reduce).Sum(columns);
  __syncthreads();
  longest = Reduce(shared.reduce).Reduce(longest, cuda::maximum<>{});
  if (threadIdx.x != 0) return;
  // A window without columns has a tile, too.
  const std::int64_t of_longest =
      windows > 0 ? max(std::int64_t{1}, (longest + tile_columns - 1) / tile_columns) : 0;
  *sums = {columns, before, static_cast<std::int32_t>(of_longest)};
}

template <class T>
std::size_t bytes_of(const std::vector<T>& array) {
  return array.size() * sizeof(T);
}

// launch(threads, bytes of shared memory), the threads of a window's CTA as a constant: small
// CTAs where they fill the device, large ones where each has much to do.
template <class Launch>
void with_threads(const DeviceCsr& matrix, std::int64_t windows, int sm_count, Launch launch) {
  const auto call = [&]<int kThreads>(std::integral_constant<int, kThreads> threads) {
    const std::int64_t columns = std::min<std::int64_t>(matrix.cols, kSlab<kThreads>);
    launch(threads, (columns / wcsr::kGroup + 1) * wcsr::kBytesPerGroup);
  };
  constexpr std::int64_t kManyEntries = 4096, kManyWindowsPerSm = 128;
  if (matrix.nnz > kManyEntries * windows) call(std::integral_constant<int, 1024>{});
  else if (windows < kManyWindowsPerSm * sm_count) call(std::integral_constant<int, 256>{});
  else call(std::integral_constant<int, 128>{});
}

std::int64_t windows_of(const WcsrShape& shape, std::int64_t places) {
  return (places + shape.window_rows - 1) / shape.window_rows;
}

// The window pointers, and after them, on 16 bytes, their sums.
std::int64_t sums_place(std::int64_t windows) { return windows / 4 * 4 + 4; }
std::size_t bytes_of_counts(std::int64_t windows) {
  return sums_place(windows) * sizeof(std::int32_t) + sizeof(Sums);
}

// function(bits), the type of a stored value. No tensor core of ours has fp64.
template <class Function>
void with_value_bits(const WcsrShape& shape, const Function& function) {
  visit_element(shape.value_type, [&](auto element) {
    using Bits = typename decltype(element)::Bits;
    if constexpr (sizeof(Bits) <= sizeof(float)) function(Bits{});
  });
}

// The format's memory, for the windows and tiles of `out`. Returns the bytes of the values and
// the window pointers, which come first.
std::size_t allocate_arrays(const WcsrShape& shape, Device& device, DeviceWcsr& out) {
  const auto slots = static_cast<std::size_t>(out.tiles() * shape.tile_columns);
  MemoryLayout layout;
  const std::size_t values = layout.add(slots * shape.window_rows * bytes_of(shape.value_type));
  const std::size_t window_ptr = layout.add((out.windows() + 1) * sizeof(std::int32_t));
  const std::size_t col_idx = layout.add(slots * sizeof(std::int32_t));
  out.memory = device.allocate(layout.bytes());
  out.values = array_at<void>(out.memory, values);
  out.window_ptr = array_at<std::int32_t>(out.memory, window_ptr);
  out.col_idx = array_at<std::int32_t>(out.memory, col_idx);
  return col_idx;
}

}  // namespace

namespace {

// The sums, and the window pointers before them where these are few.
void bring_counts(const std::int32_t* first_tile, const Sums* sums_at, Device& device,
                  DeviceWcsr& out) {
  Sums sums{};
  if (out.windows() <= DeviceWcsr::kMostOnHost) {
    std::vector<std::int32_t> counts(sums_place(out.windows()) + sizeof sums / sizeof counts[0]);
    device.download(counts.data(), first_tile, bytes_of(counts));
    std::memcpy(&sums, counts.data() + sums_place(out.windows()), sizeof sums);
    counts.resize(out.windows() + 1);
    out.window_ptr_host = std::move(counts);
  } else {
    device.download(&sums, sums_at, sizeof sums);
  }
  out.gathered = sums.gathered;
  out.sizes = {out.windows(), sums.tiles, sums.longest};
}

// `input` has room for the counts at `counted`. `row_of` as in Csr.
void build(const DeviceCsr& csr, const WcsrShape& shape, const std::int32_t* row_of,
           std::int64_t places, std::size_t counted, Device& device, DeviceWcsr& out) {
  out.places = places;
  out.shape = shape;
  const std::int64_t windows = out.windows();
  const auto stream = static_cast<cudaStream_t>(device.stream().handle);
  const Csr a{csr.row_ptr, csr.col_idx, row_of, places, shape.window_rows};
  const auto ctas = static_cast<unsigned>(windows);
  const int sm_count = device.info().sm_count;
  auto* const first_tile = array_at<std::int32_t>(out.input, counted);
  with_threads(csr, windows, sm_count, [&](auto threads, std::size_t shared_bytes) {
    if (windows == 0) return;
    count_columns<threads()><<<ctas, threads(), shared_bytes, stream>>>(a, first_tile);
    SPMMBENCH_CUDA_LAUNCHED();
  });
  auto* const sums_at = reinterpret_cast<Sums*>(first_tile + sums_place(windows));
  sum_tiles<<<1, kSumThreads, 0, stream>>>(first_tile, windows, shape.tile_columns, sums_at);
  SPMMBENCH_CUDA_LAUNCHED();
  bring_counts(first_tile, sums_at, device, out);

  const std::size_t zeroed = allocate_arrays(shape, device, out);
  device.fill_bytes(out.memory.data(), 0, zeroed);
  const auto place = [&](auto bits) {
    using Bits = decltype(bits);
    const Boxes<Bits> boxes{static_cast<const Bits*>(csr.values), static_cast<Bits*>(out.values)};
    const Places arrays{first_tile, out.window_ptr, out.col_idx, shape.tile_columns};
    with_threads(csr, windows, sm_count, [&](auto threads, std::size_t shared_bytes) {
      place_entries<threads()><<<ctas, threads(), shared_bytes, stream>>>(a, arrays, boxes);
      SPMMBENCH_CUDA_LAUNCHED();
    });
  };
  if (windows > 0) with_value_bits(shape, place);
}

void require_countable(std::int64_t nnz) {
  if (nnz > std::numeric_limits<std::int32_t>::max())
    throw Error(fmt::format("WCSR on the device: {} nonzeros, at most 2^31 - 1", nnz));
}

}  // namespace

DeviceWcsr build_wcsr(const SparseOperand& operand, const WcsrShape& shape,
                      const Permutation& row_order, Device& device, StageTimer& stages) {
  require_countable(operand.nnz());
  const std::int64_t places =
      row_order.empty() ? operand.m() : static_cast<std::int64_t>(row_order.size());
  DeviceWcsr out;
  out.csr = std::make_unique<ResidentCsr>(operand, device, stages);
  MemoryLayout layout;
  const std::size_t row_of = layout.add(bytes_of(row_order));
  const std::size_t counted = layout.add(bytes_of_counts(windows_of(shape, places)));
  {
    const auto timed = stages.scope("upload");
    out.input = device.allocate(layout.bytes());
    device.upload(array_at<void>(out.input, row_of), row_order.data(), bytes_of(row_order));
  }
  const auto timed = stages.scope("build");
  build(out.csr->view(), shape,
        row_order.empty() ? nullptr : array_at<std::int32_t>(out.input, row_of), places, counted,
        device, out);
  return out;
}

DeviceWcsr build_wcsr(const DeviceCsr& csr, const WcsrShape& shape, const std::int32_t* row_of,
                      std::int64_t places, Device& device, StageTimer& stages) {
  require_countable(csr.nnz);
  const auto timed = stages.scope("build");
  DeviceWcsr out;
  out.input = device.allocate(bytes_of_counts(windows_of(shape, places)));
  build(csr, shape, row_of, places, 0, device, out);
  return out;
}

Buffer wcsr_positions(const DeviceCsr& csr, const DeviceWcsr& wcsr, const std::int32_t* row_of,
                      Device& device) {
  const std::int64_t stored = wcsr.tiles() * wcsr.shape.window_rows * wcsr.shape.tile_columns;
  if (stored > std::numeric_limits<std::uint32_t>::max())
    throw Error(fmt::format("{} stored values: at most 2^32 - 1 can be replaced", stored));
  Buffer positions = device.allocate(csr.nnz * sizeof(std::uint32_t));
  const Csr a{csr.row_ptr, csr.col_idx, row_of, wcsr.places, wcsr.shape.window_rows};
  const Places arrays{wcsr.window_ptr, wcsr.window_ptr, wcsr.col_idx, wcsr.shape.tile_columns};
  const std::int64_t windows = wcsr.windows();
  with_threads(csr, windows, device.info().sm_count, [&](auto threads, std::size_t shared_bytes) {
    if (windows == 0) return;
    place_entries<threads()><<<static_cast<unsigned>(windows), threads(), shared_bytes,
                               static_cast<cudaStream_t>(device.stream().handle)>>>(
        a, arrays, Positions{positions.as<std::uint32_t>()});
    SPMMBENCH_CUDA_LAUNCHED();
  });
  device.synchronize();
  return positions;
}

void replace_wcsr_values(const DeviceCsr& csr, const Buffer& positions, const DeviceWcsr& wcsr,
                         Stream stream) {
  if (csr.nnz == 0) return;
  with_value_bits(wcsr.shape, [&](auto bits) {
    using Bits = decltype(bits);
    constexpr int kThreads = 256;
    put_values<<<static_cast<unsigned>((csr.nnz + kThreads - 1) / kThreads), kThreads, 0,
                 static_cast<cudaStream_t>(stream.handle)>>>(
        static_cast<const Bits*>(csr.values), positions.as<std::uint32_t>(),
        static_cast<Bits*>(wcsr.values), csr.nnz);
    SPMMBENCH_CUDA_LAUNCHED();
  });
}

DeviceWcsr upload_wcsr(const CsrMatrix& matrix, const WcsrShape& shape,
                       const Permutation& row_order, Device& device, StageTimer& stages) {
  Wcsr host;
  {
    const auto timed = stages.scope("build");
    host = Wcsr::build(matrix, shape, row_order);
  }
  const auto timed = stages.scope("upload");
  DeviceWcsr out;
  out.shape = shape;
  out.places = host.places();
  out.gathered = static_cast<std::int64_t>(host.col_idx.size()) -
                 std::count(host.col_idx.begin(), host.col_idx.end(), Wcsr::kPadding);
  out.window_ptr_host = std::move(host.window_ptr);
  out.sizes = sizes_of(out.window_ptr_host);
  allocate_arrays(shape, device, out);
  device.upload(out.window_ptr, out.window_ptr_host.data(), bytes_of(out.window_ptr_host));
  device.upload(out.col_idx, host.col_idx.data(), bytes_of(host.col_idx));
  device.upload(out.values, host.values16.data(), bytes_of(host.values16));
  device.upload(out.values, host.values32.data(), bytes_of(host.values32));
  return out;
}

}  // namespace spmmbench
