// Builds WCSR on the device, one block per window, in two passes over the matrix: count the
// distinct columns of each window, then rank every entry's column among them and put it in its box.
// A window's columns are marked in a bitmap in shared memory, so nothing is sorted:
//
//   columns   first ...                    ... last      of the window, a slab at a time
//   bits      0100 1000 .... 0110 0000 0001              one per column
//   before    0         2         ..        4            set bits before each group of 128
//   rank(c) = before[group of c] + set bits of the group below c
//
// A window of few entries far apart would clear and scan mostly zeros: each of its entries is
// compared with every other instead.

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <cub/block/block_scan.cuh>
#include <limits>
#include <type_traits>
#include <utility>

#include "async_wcsr/device_build.hpp"
#include "common/upload_values.hpp"
#include "gpu/cuda_check.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

constexpr int kThreads = 256;
constexpr int kMaxWindowRows = 64;
constexpr std::int32_t kSlab = 1 << 18;  // columns whose bits lie in shared memory at a time
constexpr std::int32_t kGroup = 128;     // columns that one thread counts
constexpr std::int32_t kFar = 1 << 16;   // columns between the first and last of a spread window

struct Csr {
  const std::int64_t* row_ptr;
  const std::int32_t* col_idx;
  const std::int32_t* row_of;  // by place; null: the places are the rows
  std::int64_t rows;
  int window_rows;
};

using Scan = cub::BlockScan<std::int32_t, kThreads>;

// The rows of this block's window, laid end to end: entry i of [0, count) lies in row `row_of(i)`.
struct Window {
  std::int64_t shift[kMaxWindowRows];  // entry i of row r is entry i + shift[r] of the matrix
  std::int32_t start[kMaxWindowRows + 1];
  std::int32_t first_column, last_column;
  int rows;

  __device__ std::int32_t count() const { return start[rows]; }
  __device__ bool is_spread() const {
    return count() <= kThreads && last_column - first_column >= kFar;
  }
  __device__ int row_of(std::int32_t i) const {
    int low = 0, high = rows;  // start[low] <= i < start[high]
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (start[middle] <= i ? low : high) = middle;
    }
    return low;
  }
};

// By all threads; ends with a barrier.
__device__ void read_window(const Csr& a, Window& window) {
  const std::int64_t first_place = std::int64_t{blockIdx.x} * a.window_rows;
  const int row = static_cast<int>(threadIdx.x);
  if (row == 0) {
    window.rows = static_cast<int>(min(a.rows - first_place, std::int64_t{a.window_rows}));
    window.start[0] = 0;
    window.first_column = std::numeric_limits<std::int32_t>::max();
    window.last_column = -1;
  }
  __syncthreads();
  std::int64_t begin = 0, end = 0;
  if (row < window.rows) {
    const std::int64_t place = first_place + row;
    const std::int64_t at = a.row_of == nullptr ? place : a.row_of[place];
    begin = a.row_ptr[at];
    end = a.row_ptr[at + 1];
    window.start[row + 1] = static_cast<std::int32_t>(end - begin);
    if (begin < end) {
      atomicMin(&window.first_column, a.col_idx[begin]);
      atomicMax(&window.last_column, a.col_idx[end - 1]);
    }
  }
  __syncthreads();
  if (row == 0)
    for (int r = 0; r < window.rows; ++r) window.start[r + 1] += window.start[r];
  __syncthreads();
  if (row < window.rows) window.shift[row] = begin - window.start[row];
  __syncthreads();
}

// visit(entry of the matrix, row of the window, column) for all entries of the window, shared out
// among the threads: entry i of the window is thread i % kThreads's. Several columns are read at a
// time, since a matrix of few windows has few threads to hide the latency.
template <class Visit>
__device__ void for_each_entry(const Csr& a, const Window& window, Visit visit) {
  constexpr int kAhead = 4;
  const auto count = static_cast<std::uint32_t>(window.count());  // unsigned: i runs past it
  for (std::uint32_t from = threadIdx.x; from < count; from += kAhead * kThreads) {
    int row[kAhead];
    std::int64_t entry[kAhead];
    std::int32_t column[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const auto at = static_cast<std::int32_t>(min(from + i * kThreads, count - 1));
      row[i] = window.row_of(at);
      entry[i] = at + window.shift[row[i]];
      column[i] = __ldg(a.col_idx + entry[i]);
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i)
      if (from + i * kThreads < count) visit(entry[i], row[i], column[i]);
  }
}

// The columns of a spread window, one per thread, and whether no earlier thread has the same one.
struct Spread {
  std::int32_t column[kThreads];

  __device__ bool is_first(std::int32_t count) const {
    const auto own = static_cast<std::int32_t>(threadIdx.x);
    bool first = own < count;
    for (std::int32_t i = 0; i < count; ++i) first &= column[i] != column[own] || i >= own;
    return first;
  }
};

// Bits of the columns [first, first + kSlab), and the numbers of those before each group of 128.
class Bitmap {
 public:
  static constexpr std::size_t kBytesPerGroup = kGroup / 8 + sizeof(std::int32_t);

  __device__ Bitmap(unsigned char* shared, std::int32_t first, std::int32_t last)
      : first_(first),
        groups_(min((last - first) / kGroup + 1, kSlab / kGroup)),
        bits_(reinterpret_cast<uint4*>(shared)),
        before_(reinterpret_cast<std::int32_t*>(bits_ + groups_)) {}

  // By all threads; ends with a barrier.
  __device__ void clear() {
    for (int group = static_cast<int>(threadIdx.x); group < groups_; group += kThreads)
      bits_[group] = make_uint4(0, 0, 0, 0);
    __syncthreads();
  }
  __device__ bool covers(std::int32_t column) const {
    return static_cast<std::uint32_t>(column - first_) < static_cast<std::uint32_t>(kSlab);
  }
  // True for the first that sets this column.
  __device__ bool set(std::int32_t column) {
    const std::int32_t at = column - first_;
    const std::uint32_t bit = 1U << (at % 32);
    return (atomicOr(reinterpret_cast<std::uint32_t*>(bits_) + at / 32, bit) & bit) == 0;
  }
  // Counts, starting from `rank`; emit(rank, column) for every column. By all threads, after a
  // barrier; ends with one. Returns the rank after the last.
  template <class Emit>
  __device__ std::int32_t count(std::int32_t rank, Scan::TempStorage& scan, Emit emit) {
    for (int from = 0; from < groups_; from += kThreads) {
      const int group = from + static_cast<int>(threadIdx.x);
      const uint4 bits = group < groups_ ? bits_[group] : make_uint4(0, 0, 0, 0);
      const std::uint32_t words[4] = {bits.x, bits.y, bits.z, bits.w};
      const int set = __popc(bits.x) + __popc(bits.y) + __popc(bits.z) + __popc(bits.w);
      std::int32_t before = 0, all = 0;
      Scan(scan).ExclusiveSum(set, before, all);
      __syncthreads();  // the scan's memory is used again
      before += rank;
      if (group < groups_) before_[group] = before;
      for (int w = 0; w < 4; ++w)
        for (std::uint32_t rest = words[w]; rest != 0; rest &= rest - 1)
          emit(before++, first_ + group * kGroup + w * 32 + __ffs(static_cast<int>(rest)) - 1);
      rank += all;
    }
    __syncthreads();
    return rank;
  }
  __device__ std::int32_t rank(std::int32_t column) const {
    const std::int32_t at = column - first_, word = at / 32;
    const auto* const words = reinterpret_cast<const std::uint32_t*>(bits_);
    std::int32_t rank = before_[at / kGroup];
    for (std::int32_t w = word / 4 * 4; w < word; ++w) rank += __popc(words[w]);
    return rank + __popc(words[word] & ((1U << (at % 32)) - 1));
  }

 private:
  std::int32_t first_;
  int groups_;
  uint4* bits_;
  std::int32_t* before_;
};

// Distinct columns of each window.
__global__ void __launch_bounds__(kThreads) count_columns(Csr a, std::int32_t* counts) {
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ Window window;
  __shared__ Spread spread;
  read_window(a, window);
  std::int32_t distinct = 0;
  if (window.is_spread()) {
    for_each_entry(a, window, [&](std::int64_t, int, std::int32_t column) {
      spread.column[threadIdx.x] = column;
    });
    __syncthreads();
    distinct = __syncthreads_count(spread.is_first(window.count()));
  } else {
    std::int32_t mine = 0;
    for (std::int64_t first = window.first_column; first <= window.last_column; first += kSlab) {
      Bitmap bitmap(shared, static_cast<std::int32_t>(first), window.last_column);
      bitmap.clear();
      for_each_entry(a, window, [&](std::int64_t, int, std::int32_t column) {
        if (bitmap.covers(column)) mine += bitmap.set(column);
      });
      __syncthreads();  // before the bits are cleared
    }
    __shared__ std::int32_t sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    const auto of_warp =
        static_cast<std::int32_t>(__reduce_add_sync(0xFFFFFFFFU, static_cast<std::uint32_t>(mine)));
    if (threadIdx.x % 32 == 0) atomicAdd(&sum, of_warp);
    __syncthreads();
    distinct = sum;
  }
  if (threadIdx.x == 0) counts[blockIdx.x] = distinct;
}

// A zero entry becomes -0: padding is +0.
template <class Bits>
__device__ Bits mark_entry(Bits stored) {
  constexpr Bits kMinusZero = Bits{1} << (8 * sizeof(Bits) - 1);
  return stored == 0 ? kMinusZero : stored;
}

template <class Bits>
struct Boxes {
  const Bits* entries;  // values of the CSR matrix
  const std::int32_t* window_ptr;
  std::int32_t* col_idx;  // all padding
  Bits* values;           // all zero
  int tile_columns;
};

template <class Bits>
__global__ void __launch_bounds__(kThreads) place_entries(Csr a, Boxes<Bits> out) {
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ Window window;
  __shared__ Spread spread;
  __shared__ Scan::TempStorage scan;
  read_window(a, window);
  const std::int64_t tile = out.window_ptr[blockIdx.x];
  std::int32_t* const col_idx = out.col_idx + tile * out.tile_columns;
  Bits* const values = out.values + tile * a.window_rows * out.tile_columns;
  const auto place = [&](std::int64_t entry, int row, std::int32_t rank) {
    const std::int64_t line =
        std::int64_t{rank / out.tile_columns} * a.window_rows + row;  // of a box
    values[line * out.tile_columns + rank % out.tile_columns] = mark_entry(out.entries[entry]);
  };

  if (window.is_spread()) {
    const std::int32_t count = window.count();
    for_each_entry(a, window, [&](std::int64_t, int, std::int32_t column) {
      spread.column[threadIdx.x] = column;
    });
    __syncthreads();
    const bool first = spread.is_first(count);
    const std::int32_t own = spread.column[threadIdx.x];
    __syncthreads();
    if (!first) spread.column[threadIdx.x] = std::numeric_limits<std::int32_t>::max();
    __syncthreads();
    for_each_entry(a, window, [&](std::int64_t entry, int row, std::int32_t) {
      std::int32_t rank = 0;
      for (std::int32_t i = 0; i < count; ++i) rank += spread.column[i] < own;
      if (first) col_idx[rank] = own;
      place(entry, row, rank);
    });
    return;
  }
  std::int32_t rank = 0;
  for (std::int64_t first = window.first_column; first <= window.last_column; first += kSlab) {
    Bitmap bitmap(shared, static_cast<std::int32_t>(first), window.last_column);
    bitmap.clear();
    for_each_entry(a, window, [&](std::int64_t, int, std::int32_t column) {
      if (bitmap.covers(column)) bitmap.set(column);
    });
    __syncthreads();
    rank = bitmap.count(rank, scan,
                        [&](std::int32_t at, std::int32_t column) { col_idx[at] = column; });
    for_each_entry(a, window, [&](std::int64_t entry, int row, std::int32_t column) {
      if (bitmap.covers(column)) place(entry, row, bitmap.rank(column));
    });
    __syncthreads();
  }
}

// From the distinct columns of each window, in place: the first tile of each, and the end.
std::int64_t sum_tiles(std::vector<std::int32_t>& counts, int tile_columns) {
  std::int64_t tiles = 0, gathered = 0;
  for (std::size_t w = 0; w + 1 < counts.size(); ++w) {
    const std::int32_t columns = counts[w];
    counts[w] = static_cast<std::int32_t>(tiles);
    gathered += columns;
    tiles += std::max(1, (columns + tile_columns - 1) / tile_columns);
    if (tiles > std::numeric_limits<std::int32_t>::max())
      throw Error("WCSR: more than 2^31 - 1 tiles");
  }
  counts.back() = static_cast<std::int32_t>(tiles);
  return gathered;
}

}  // namespace

DeviceWcsr build_wcsr(const CsrMatrix& matrix, const WcsrShape& shape, const Permutation& row_order,
                      Device& device, StageTimer& stages) {
  const std::int64_t windows = (matrix.rows + shape.window_rows - 1) / shape.window_rows;
  if (matrix.nnz() > std::numeric_limits<std::int32_t>::max())
    throw Error(fmt::format("WCSR on the device: {} nonzeros, at most 2^31 - 1", matrix.nnz()));
  Buffer row_ptr, columns, entries, row_of;
  {
    const auto timed = stages.scope("upload");
    row_ptr = device.upload(matrix.row_ptr);
    columns = device.upload(matrix.col_idx);
    entries = upload_values(device, matrix.values, shape.value_type);
    row_of = device.upload(row_order);
  }
  const auto timed = stages.scope("build");
  const auto stream = static_cast<cudaStream_t>(device.stream().handle);
  const Csr a{row_ptr.as<std::int64_t>(), columns.as<std::int32_t>(), row_of.as<std::int32_t>(),
              matrix.rows, shape.window_rows};
  const auto blocks = static_cast<unsigned>(windows);
  const std::size_t shared_bytes =
      (std::min<std::int64_t>(matrix.cols, kSlab) / kGroup + 1) * Bitmap::kBytesPerGroup;
  DeviceWcsr out;
  out.window_ptr_host.resize(windows + 1);
  out.window_ptr = device.allocate((windows + 1) * sizeof(std::int32_t));
  if (windows > 0) {
    count_columns<<<blocks, kThreads, shared_bytes, stream>>>(a, out.window_ptr.as<std::int32_t>());
    SPMMBENCH_CUDA_LAUNCHED();
  }
  device.download(out.window_ptr_host.data(), out.window_ptr.data(),
                  windows * sizeof(std::int32_t));
  out.gathered = sum_tiles(out.window_ptr_host, shape.tile_columns);
  device.upload(out.window_ptr.data(), out.window_ptr_host.data(), out.window_ptr.bytes());

  const std::int64_t slots = out.tiles() * shape.tile_columns;
  out.col_idx = device.allocate(slots * sizeof(std::int32_t));
  out.values = device.allocate(slots * shape.window_rows * bytes_of(shape.value_type));
  static_assert(Wcsr::kPadding == -1, "bytes of 0xFF");
  device.fill_bytes(out.col_idx.data(), 0xFF, out.col_idx.bytes());
  device.fill_bytes(out.values.data(), 0, out.values.bytes());
  const auto place = [&](auto bits) {
    using Bits = decltype(bits);
    const Boxes<Bits> boxes{entries.as<Bits>(), out.window_ptr.as<std::int32_t>(),
                            out.col_idx.as<std::int32_t>(), out.values.as<Bits>(),
                            shape.tile_columns};
    place_entries<<<blocks, kThreads, shared_bytes, stream>>>(a, boxes);
    SPMMBENCH_CUDA_LAUNCHED();
  };
  if (windows > 0) {
    if (shape.value_type == ElementType::f32) place(std::uint32_t{});
    else place(std::uint16_t{});
  }
  device.synchronize();
  return out;
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
  out.window_ptr = device.upload(host.window_ptr);
  out.col_idx = device.upload(host.col_idx);
  out.values = host.values16.empty() ? device.upload(host.values32) : device.upload(host.values16);
  out.gathered = static_cast<std::int64_t>(host.col_idx.size()) -
                 std::count(host.col_idx.begin(), host.col_idx.end(), Wcsr::kPadding);
  out.window_ptr_host = std::move(host.window_ptr);
  device.synchronize();
  return out;
}

}  // namespace spmmbench
