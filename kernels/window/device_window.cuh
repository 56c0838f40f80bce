#pragma once
// A CTA's window of rows while WCSR is built on the device: its entries, and the ranks of their
// columns among its distinct ones. Columns are marked in a bitmap in shared memory, so nothing is
// sorted:
//
//   columns   first ...                    ... last      of the window, a slab at a time
//   bits      0100 1000 .... 0110 0000 0001              one per column
//   before    0         2         ..        4            set bits before each group of 128
//   rank(c) = before[group of c] + set bits of the group below c
//
// A window of few entries far apart would clear and scan mostly zeros: each of its entries is
// compared with every other instead.

#include <cstddef>
#include <cstdint>
#include <cub/block/block_scan.cuh>
#include <limits>

namespace spmmbench::wcsr {

constexpr int kMaxWindowRows = 64;
constexpr std::int32_t kGroup = 128;    // columns that one thread counts
constexpr std::int32_t kFar = 1 << 16;  // from the first to the last column of a scattered window

struct Csr {
  const std::int64_t* row_ptr;
  const std::int32_t* col_idx;
  const std::int32_t* row_of;  // by place; null: the places are the rows
  std::int64_t places;
  int window_rows;

  __host__ __device__ std::int64_t windows() const {
    return (places + window_rows - 1) / window_rows;
  }
};

// Columns whose bits lie in shared memory at a time: as many as leave room for the CTAs that an
// SM can hold otherwise, and for what else a CTA keeps there.
template <int kThreads>
constexpr std::int32_t kSlab = kThreads == 128   ? 1 << 16
                               : kThreads == 256 ? 1 << 18
                                                 : 1 << 17;

template <int kThreads>
using Scan = cub::BlockScan<std::int32_t, kThreads>;

// The rows of a CTA's window, laid end to end: entry i of [0, count) lies in row `row_of(i)`.
struct Window {
  std::int64_t shift[kMaxWindowRows];  // entry i of row r is entry i + shift[r] of the matrix
  std::int32_t start[kMaxWindowRows + 1];
  std::int32_t first_column, last_column;
  int rows;

  __device__ std::int32_t count() const { return start[rows]; }
  __device__ bool is_scattered() const {
    return count() <= static_cast<int>(blockDim.x) && last_column - first_column >= kFar;
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

constexpr unsigned kAllLanes = 0xFFFFFFFFU;
constexpr int kWarpLanes = 32;

// The sum over the lanes up to this one.
__device__ inline int sum_to(int mine) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
#pragma unroll
  for (int step = 1; step < kWarpLanes; step *= 2) {
    const int other = __shfl_up_sync(kAllLanes, mine, step);
    if (lane >= step) mine += other;
  }
  return mine;
}

// The entries of a row of the window; the thread of the row's number has them.
struct RowEntries {
  std::int64_t begin = 0, end = 0;
};

// The window of these entries. By all threads, those past its rows with none; ends with a barrier.
__device__ inline void set_window(const Csr& a, int rows, const RowEntries& own, Window& window) {
  const int row = static_cast<int>(threadIdx.x);
  if (row == 0) {
    window.rows = rows;
    window.start[0] = 0;
    window.first_column = std::numeric_limits<std::int32_t>::max();
    window.last_column = -1;
  }
  __syncthreads();
  if (row < rows) {
    window.start[row + 1] = static_cast<std::int32_t>(own.end - own.begin);
    if (own.begin < own.end) {
      atomicMin(&window.first_column, a.col_idx[own.begin]);
      atomicMax(&window.last_column, a.col_idx[own.end - 1]);
    }
  }
  __syncthreads();
  if (row < kWarpLanes) {
#pragma unroll
    for (int first = 0, before = 0; first < kMaxWindowRows; first += kWarpLanes) {
      const int length = first + row < rows ? window.start[first + row + 1] : 0;
      const int sum = before + sum_to(length);
      if (first + row < rows) window.start[first + row + 1] = sum;
      before = __shfl_sync(kAllLanes, sum, kWarpLanes - 1);
    }
  }
  __syncthreads();
  if (row < rows) window.shift[row] = own.begin - window.start[row];
  __syncthreads();
}

// By all threads; ends with a barrier.
__device__ inline void read_window(const Csr& a, std::int64_t first_place, Window& window) {
  const int row = static_cast<int>(threadIdx.x);
  const int rows = static_cast<int>(min(a.places - first_place, std::int64_t{a.window_rows}));
  RowEntries own;
  if (row < rows) {
    const std::int64_t place = first_place + row;
    const std::int64_t at = a.row_of == nullptr ? place : a.row_of[place];
    own = {a.row_ptr[at], a.row_ptr[at + 1]};
  }
  set_window(a, rows, own, window);
}

// How many of the first `count` columns of a row are below `column`. For kLanes neighbours of a
// warp, which look for it together, since each step waits for memory.
template <int kLanes>
__device__ std::int32_t columns_below(const std::int32_t* row, std::int32_t count,
                                      std::int64_t column) {
  static_assert(kLanes < kWarpLanes);
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const unsigned lanes = ((1U << kLanes) - 1) << (threadIdx.x % kWarpLanes / kLanes * kLanes);
  std::int32_t begin = 0, end = count;  // columns before `begin` are below, from `end` on not
  while (begin < end) {
    const std::int32_t step = (end - begin + kLanes) / (kLanes + 1);
    const std::int32_t own = begin + (lane + 1) * step - 1;
    const bool is_below = own < end && row[own] < column;
    const int steps = __popc(__ballot_sync(lanes, is_below) & lanes);
    if (steps < kLanes) end = min(end, begin + (steps + 1) * step - 1);
    begin += steps * step;
  }
  return begin;
}

// Leaves of a window that was read the columns [first, end). By all threads; ends with a barrier.
template <int kThreads>
__device__ void take_columns(const Csr& a, std::int64_t first, std::int64_t end, Window& window) {
  constexpr int kBounds = 2;                    // of a row
  constexpr int kSearches = 32 * kBounds;       // at a time: all of a window of 32 rows
  constexpr int kLanes = kThreads / kSearches;  // of each
  __shared__ std::int32_t below[kMaxWindowRows * kBounds];
  const int rows = window.rows, row = static_cast<int>(threadIdx.x);
  for (int i = row / kLanes; i < rows * kBounds; i += kSearches) {
    const std::int32_t start = window.start[i / kBounds];
    const std::int32_t count = columns_below<kLanes>(a.col_idx + start + window.shift[i / kBounds],
                                                     window.start[i / kBounds + 1] - start,
                                                     i % kBounds == 0 ? first : end);
    if (row % kLanes == 0) below[i] = count;
  }
  const std::int64_t begin = row < rows ? window.start[row] + window.shift[row] : 0;
  __syncthreads();
  RowEntries own;
  if (row < rows) own = {begin + below[row * kBounds], begin + below[row * kBounds + 1]};
  set_window(a, rows, own, window);
}

// The same for one of `parts` ranges of its columns, of equal width.
template <int kThreads>
__device__ void take_part(const Csr& a, int part, int parts, Window& window) {
  const std::int64_t first = window.first_column;
  const std::int64_t width = (window.last_column - first) / parts + 1;
  take_columns<kThreads>(a, first + part * width, first + (part + 1) * width, window);
}

// visit(entry of the matrix, row of the window, column) for all entries of the window, shared out
// among the threads: thread i % kThreads takes entry i. Several columns are read at a
// time, since a matrix of few windows has few threads to hide the latency.
template <int kThreads, class Visit>
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

// The columns of a scattered window, one per thread, and whether no earlier thread has the same
// one.
template <int kThreads>
struct ScatteredColumns {
  std::int32_t column[kThreads];

  __device__ bool is_first(std::int32_t count) const {
    const auto own = static_cast<std::int32_t>(threadIdx.x);
    bool first = own < count;
    for (std::int32_t i = 0; i < count; ++i) first &= column[i] != column[own] || i >= own;
    return first;
  }
};

// Bits of the columns [first, first + slab), and the numbers of those before each group of 128.
template <int kThreads>
class Bitmap {
 public:
  __device__ Bitmap(unsigned char* shared, std::int32_t first, std::int32_t last)
      : first_(first),
        groups_(min((last - first) / kGroup + 1, kSlab<kThreads> / kGroup)),
        bits_(reinterpret_cast<uint4*>(shared)),
        before_(reinterpret_cast<std::int32_t*>(bits_ + groups_)) {}

  // By all threads; ends with a barrier.
  __device__ void clear() {
    for (int group = static_cast<int>(threadIdx.x); group < groups_; group += kThreads)
      bits_[group] = make_uint4(0, 0, 0, 0);
    __syncthreads();
  }
  __device__ bool covers(std::int32_t column) const {
    return static_cast<std::uint32_t>(column - first_) <
           static_cast<std::uint32_t>(kSlab<kThreads>);
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
  __device__ std::int32_t count(std::int32_t rank, typename Scan<kThreads>::TempStorage& scan,
                                Emit emit) {
    for (int from = 0; from < groups_; from += kThreads) {
      const int group = from + static_cast<int>(threadIdx.x);
      const uint4 bits = group < groups_ ? bits_[group] : make_uint4(0, 0, 0, 0);
      const std::uint32_t words[4] = {bits.x, bits.y, bits.z, bits.w};
      const int set = __popc(bits.x) + __popc(bits.y) + __popc(bits.z) + __popc(bits.w);
      std::int32_t before = 0, all = 0;
      Scan<kThreads>(scan).ExclusiveSum(set, before, all);
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

constexpr std::size_t kBytesPerGroup = kGroup / 8 + sizeof(std::int32_t);  // of a bitmap

// The same with a byte for each column, where a window's columns lie close together: there many
// threads would set bits of the same word, one after the other.
template <int kThreads>
class ColumnFlags {
 public:
  static constexpr std::int32_t kMost = 1 << 13;  // columns
  static constexpr std::int32_t kOfGroup = 16;    // columns that one thread counts
  static constexpr std::size_t kBytesOfGroup = kOfGroup + sizeof(std::int32_t);

  __device__ static bool fit(const Window& window) {
    return window.last_column - window.first_column < kMost;
  }
  __device__ ColumnFlags(unsigned char* shared, const Window& window)
      : first_(window.first_column),
        groups_((window.last_column - window.first_column) / kOfGroup + 1),
        flags_(shared),
        before_(reinterpret_cast<std::int32_t*>(shared + groups_ * kOfGroup)) {}

  // By all threads; ends with a barrier.
  __device__ void clear() {
    for (int group = static_cast<int>(threadIdx.x); group < groups_; group += kThreads)
      reinterpret_cast<uint4*>(flags_)[group] = make_uint4(0, 0, 0, 0);
    __syncthreads();
  }
  __device__ void set(std::int32_t column) { flags_[column - first_] = 1; }
  // How many flags are set among those that this thread counts. Call it after a barrier.
  __device__ std::int32_t count_own() const {
    std::int32_t count = 0;
    for (int group = static_cast<int>(threadIdx.x); group < groups_; group += kThreads)
      count += set_in(reinterpret_cast<const uint4*>(flags_)[group]);
    return count;
  }
  // As Bitmap::count.
  template <class Emit>
  __device__ std::int32_t count(std::int32_t rank, typename Scan<kThreads>::TempStorage& scan,
                                Emit emit) {
    for (int from = 0; from < groups_; from += kThreads) {
      const int group = from + static_cast<int>(threadIdx.x);
      const uint4 flags =
          group < groups_ ? reinterpret_cast<const uint4*>(flags_)[group] : make_uint4(0, 0, 0, 0);
      std::int32_t before = 0, all = 0;
      Scan<kThreads>(scan).ExclusiveSum(set_in(flags), before, all);
      __syncthreads();  // the scan's memory is used again
      before += rank;
      if (group < groups_) before_[group] = before;
      const std::uint32_t words[4] = {flags.x, flags.y, flags.z, flags.w};
      for (int w = 0; w < 4; ++w)
        for (std::uint32_t rest = words[w]; rest != 0; rest &= rest - 1)
          emit(before++,
               first_ + group * kOfGroup + w * 4 + (__ffs(static_cast<int>(rest)) - 1) / 8);
      rank += all;
    }
    __syncthreads();
    return rank;
  }
  __device__ std::int32_t rank(std::int32_t column) const {
    const std::int32_t at = column - first_, group = at / kOfGroup;
    const uint4 flags = reinterpret_cast<const uint4*>(flags_)[group];
    const std::uint32_t words[4] = {flags.x, flags.y, flags.z, flags.w};
    std::int32_t rank = before_[group];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const int below = min(max(at % kOfGroup - 4 * w, 0), 4);  // columns of this word
      rank += __popc(words[w] & (below == 4 ? ~0U : (1U << 8 * below) - 1));
    }
    return rank;
  }

 private:
  __device__ static std::int32_t set_in(const uint4& flags) {
    return __popc(flags.x) + __popc(flags.y) + __popc(flags.z) + __popc(flags.w);
  }

  std::int32_t first_;
  int groups_;
  unsigned char* flags_;
  std::int32_t* before_;
};

// Shared memory for the marks of the columns of a window.
template <int kThreads>
std::size_t bytes_of_marks(std::int64_t columns) {
  using Flags = ColumnFlags<kThreads>;
  const std::int64_t in_bits = columns < kSlab<kThreads> ? columns : kSlab<kThreads>;
  const std::int64_t in_bytes = columns < Flags::kMost ? columns : Flags::kMost;
  const std::size_t bits = (in_bits / kGroup + 1) * kBytesPerGroup;
  const std::size_t bytes = (in_bytes / Flags::kOfGroup + 1) * Flags::kBytesOfGroup;
  return bits > bytes ? bits : bytes;
}

// Distinct columns of the window that read_window read, for thread 0. `shared`: of a Bitmap. By all
// threads.
template <int kThreads>
__device__ std::int32_t count_distinct(const Csr& a, const Window& window, unsigned char* shared,
                                       ScatteredColumns<kThreads>& scattered) {
  if (window.is_scattered()) {
    for_each_entry<kThreads>(a, window, [&](std::int64_t, int, std::int32_t column) {
      scattered.column[threadIdx.x] = column;
    });
    __syncthreads();
    return __syncthreads_count(scattered.is_first(window.count()));
  }
  std::int32_t mine = 0;
  if (ColumnFlags<kThreads>::fit(window)) {
    ColumnFlags<kThreads> flags(shared, window);
    flags.clear();
    for_each_entry<kThreads>(a, window,
                             [&](std::int64_t, int, std::int32_t column) { flags.set(column); });
    __syncthreads();
    mine = flags.count_own();
  } else {
    for (std::int64_t first = window.first_column; first <= window.last_column;
         first += kSlab<kThreads>) {
      Bitmap<kThreads> bitmap(shared, static_cast<std::int32_t>(first), window.last_column);
      bitmap.clear();
      for_each_entry<kThreads>(a, window, [&](std::int64_t, int, std::int32_t column) {
        if (bitmap.covers(column)) mine += bitmap.set(column);
      });
      __syncthreads();  // before the bits are cleared
    }
  }
  __shared__ std::int32_t sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  const auto of_warp =
      static_cast<std::int32_t>(__reduce_add_sync(kAllLanes, static_cast<std::uint32_t>(mine)));
  if (threadIdx.x % 32 == 0) atomicAdd(&sum, of_warp);
  __syncthreads();
  return sum;
}

}  // namespace spmmbench::wcsr
