#pragma once
// The two passes of the WCSR build: count the distinct columns of each window, then rank every
// entry's column among them and put it in its box. A window has a CTA; or, where most have few
// entries, a warp, and those that do not fit have the CTA one after the other. A window of very
// many entries is left to a kernel of large CTAs, which share it by ranges of its columns.

#include <cstdint>
#include <limits>
#include <type_traits>

#include "format/wcsr.hpp"
#include "window/device_short_window.cuh"
#include "window/device_window.cuh"
#include "window/launch_next.cuh"
#include "window/long_windows.cuh"

namespace spmmbench::wcsr {

// Windows that do not fit a warp, as the first pass finds them.
struct Skipped {
  std::int32_t* list = nullptr;  // null: there is no list
  unsigned* count = nullptr;     // zero to begin with

  __device__ void add(std::int64_t window) const {
    if (list != nullptr) list[atomicAdd(count, 1U)] = static_cast<std::int32_t>(window);
  }
};

// Passes that are enqueued before the height of windows is known take it when they start.
struct Counting {
  Csr a;

  __device__ void take_height(int rows) { a.window_rows = rows; }
  std::int32_t* counts;  // of each window; null: parts alone are counted
  LongWindows longs;
  Skipped skipped;
  static constexpr bool kReadsSkipped = false;

  template <int kThreads>
  __device__ void by_cta(std::int64_t index, unsigned char* shared) const {
    __shared__ Window window;
    __shared__ ScatteredColumns<kThreads> scattered;
    read_window(a, index * a.window_rows, window);
    if (window.count() > longs.most) {
      if (threadIdx.x == 0) {
        longs.add(index, window.count());
        counts[index] = 0;
      }
    } else {
      const std::int32_t distinct = count_distinct<kThreads>(a, window, shared, scattered);
      if (threadIdx.x == 0) {
        counts[index] = distinct;
        skipped.add(index);
      }
    }
    __syncthreads();  // all of it may be used for another window
  }

  // `columns`: of the window's parts.
  template <int kThreads>
  __device__ void part_by_cta(const Part& part, std::int32_t* columns,
                              unsigned char* shared) const {
    __shared__ Window window;
    __shared__ ScatteredColumns<kThreads> scattered;
    read_window(a, std::int64_t{part.window} * a.window_rows, window);
    const int parts = Part::count(window.count());
    if (parts > 1) take_part<kThreads>(a, part.number, parts, window);
    const std::int32_t distinct = count_distinct<kThreads>(a, window, shared, scattered);
    if (threadIdx.x == 0) {
      columns[part.number] = distinct;
      if (counts != nullptr) atomicAdd(counts + part.window, distinct);
    }
    __syncthreads();  // all of it may be used for another part
  }

  // False where the window does not fit.
  template <class Key>
  __device__ bool by_warp(std::int64_t index, std::uint8_t* /*ranks*/) const {
    const ShortWindow window(a, index);
    if (!window.fits()) return false;
    window.with_items([&](auto items) {
      Key keys[items()];
      window.sorted(keys);
      const int distinct = window.firsts(keys).all;
      if (threadIdx.x % kLanes == 0) counts[index] = distinct;
    });
    return true;
  }
};

template <class Bits>
struct Boxes {
  const Bits* entries;  // values of the CSR matrix
  Bits* values;
  __device__ void put(std::int64_t entry, std::int64_t at) const {
    values[at] = mark_entry(entries[entry]);
  }
  // Values of whole tiles, by `thread` of `threads`.
  __device__ void clear(std::int64_t from, std::int64_t to, int thread, int threads) const {
    constexpr std::int64_t kPerVector = sizeof(uint4) / sizeof(Bits);
    auto* const vectors = reinterpret_cast<uint4*>(values);
    for (std::int64_t i = from / kPerVector + thread; i < to / kPerVector; i += threads)
      vectors[i] = make_uint4(0, 0, 0, 0);
  }
  // Those of the columns [from, to) of the window whose first tile is `tile`.
  __device__ void clear_columns(std::int64_t tile, int rows, int tile_columns, std::int32_t from,
                                std::int32_t to, int thread, int threads) const {
    const std::int32_t first = from / tile_columns;
    const std::int32_t lines = ((to + tile_columns - 1) / tile_columns - first) * rows;
    for (std::int32_t i = thread; i < lines; i += threads) {
      const std::int32_t column = (first + i / rows) * tile_columns;
      Bits* const line = values + ((tile + first) * rows + i) * tile_columns;
      const int begin = max(from - column, 0), end = min(to - column, tile_columns);
      for (int c = begin; c < end; ++c) line[c] = 0;
    }
  }
};

// Where in the boxes each entry has its value.
struct Positions {
  std::uint32_t* of;
  __device__ void put(std::int64_t entry, std::int64_t at) const {
    of[entry] = static_cast<std::uint32_t>(at);
  }
  __device__ void clear(std::int64_t, std::int64_t, int, int) const {}
  __device__ void clear_columns(std::int64_t, int, int, std::int32_t, std::int32_t, int,
                                int) const {}
};

struct Places {
  const std::int32_t* first_tile;  // of every window, and the end
  std::int32_t* window_ptr;
  std::int32_t* col_idx;
  std::int64_t windows;
  int tile_columns;
};

template <class Entries>
struct Placing {
  Csr a;
  Places out;
  Entries entries;
  int most;  // entries of a window; longer ones are left out
  Skipped skipped{};
  static constexpr bool kReadsSkipped = true;

  __device__ void take_height(int rows) {
    a.window_rows = rows;
    out.windows = a.windows();
  }

  // A window's part of the format.
  struct Target {
    const Placing& in;
    std::int64_t tile, end;
    std::int32_t* col_idx;
    std::int32_t before = 0;  // columns of the window's parts before this one
    bool is_last = true;      // of the parts

    // `thread` of the threads that place the window or a part of it together.
    __device__ Target(const Placing& placing, std::int64_t index, int thread)
        : in(placing),
          tile(in.out.first_tile[index]),
          end(in.out.first_tile[index + 1]),
          col_idx(in.out.col_idx + tile * in.out.tile_columns) {
      if (thread != 0) return;
      in.out.window_ptr[index] = static_cast<std::int32_t>(tile);
      if (index + 1 == in.out.windows)
        in.out.window_ptr[index + 1] = static_cast<std::int32_t>(end);
    }
    __device__ void clear(int thread, int threads) const {
      const std::int64_t of_tile = std::int64_t{in.a.window_rows} * in.out.tile_columns;
      in.entries.clear(tile * of_tile, end * of_tile, thread, threads);
    }
    __device__ void clear_columns(std::int32_t own, int thread, int threads) const {
      const int columns = in.out.tile_columns;
      const auto all = static_cast<std::int32_t>((end - tile) * columns);
      in.entries.clear_columns(tile, in.a.window_rows, columns, before,
                               is_last ? all : before + own, thread, threads);
    }
    __device__ void pad(std::int64_t distinct, int thread, int threads) const {
      if (!is_last) return;
      for (std::int64_t at = distinct + thread; at < (end - tile) * in.out.tile_columns;
           at += threads)
        col_idx[at] = Wcsr::kPadding;
    }
    __device__ void put(std::int64_t entry, int row, std::int32_t rank) const {
      const std::int64_t line = (tile + rank / in.out.tile_columns) * in.a.window_rows + row;
      in.entries.put(entry, line * in.out.tile_columns + rank % in.out.tile_columns);
    }
  };

  template <int kThreads>
  __device__ void by_cta(std::int64_t index, unsigned char* shared) const {
    __shared__ Window window;
    read_window(a, index * a.window_rows, window);
    if (window.count() > most) return __syncthreads();
    const Target target(*this, index, static_cast<int>(threadIdx.x));
    target.clear(static_cast<int>(threadIdx.x), kThreads);
    place<kThreads>(window, shared, target);
  }

  template <int kThreads>
  __device__ void part_by_cta(const Part& part, const std::int32_t* columns,
                              unsigned char* shared) const {
    __shared__ Window window;
    read_window(a, std::int64_t{part.window} * a.window_rows, window);
    const int parts = Part::count(window.count());
    if (parts > 1) take_part<kThreads>(a, part.number, parts, window);
    Target target(*this, part.window, static_cast<int>(threadIdx.x));
    for (int i = 0; i < part.number; ++i) target.before += columns[i];
    target.is_last = part.number + 1 == parts;
    // Parts share tiles, so each clears its own columns.
    target.clear_columns(columns[part.number], static_cast<int>(threadIdx.x), kThreads);
    place<kThreads>(window, shared, target);
  }

  // False where the window does not fit. `ranks`: shared memory for one of each entry.
  template <class Key>
  __device__ bool by_warp(std::int64_t index, std::uint8_t* ranks) const {
    const ShortWindow window(a, index);
    if (!window.fits()) return false;
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
    const Target target(*this, index, lane);
    target.clear(lane, kLanes);
    window.with_items([&](auto items) {
      Key keys[items()];
      window.sorted(keys);
      const auto firsts = window.firsts(keys);
      int rank = firsts.before - 1;
#pragma unroll
      for (int i = 0; i < items(); ++i) {
        if (!window.has(lane * items() + i)) continue;
        const bool is_first = (firsts.bits >> i & 1U) != 0;
        rank += is_first;
        if (is_first)
          target.col_idx[rank] = static_cast<std::int32_t>(keys[i] >> ShortWindow::kNumberBits);
        ranks[keys[i] & (ShortWindow::kMostEntries - 1)] = static_cast<std::uint8_t>(rank);
      }
      target.pad(firsts.all, lane, kLanes);
      __syncwarp();
#pragma unroll
      for (int i = 0; i < items(); ++i) {
        const ShortWindow::Entry own = window.entry(i);
        if (own.is_there) target.put(own.index, own.row, ranks[i * kLanes + lane]);
      }
    });
    return true;
  }

 private:
  // By all threads; ends with a barrier.
  template <int kThreads>
  __device__ void place(const Window& window, unsigned char* shared, const Target& target) const {
    __shared__ ScatteredColumns<kThreads> scattered;
    __shared__ typename Scan<kThreads>::TempStorage scan;
    if (window.is_scattered()) place_scattered<kThreads>(window, scattered, target);
    else if (ColumnFlags<kThreads>::fit(window))
      place_flagged<kThreads>(window, shared, scan, target);
    else place_marked<kThreads>(window, shared, scan, target);
    __syncthreads();  // all of it may be used for another window
  }

  template <int kThreads>
  __device__ void place_scattered(const Window& window, ScatteredColumns<kThreads>& scattered,
                                  const Target& target) const {
    const std::int32_t count = window.count();
    for_each_entry<kThreads>(a, window, [&](std::int64_t, int, std::int32_t column) {
      scattered.column[threadIdx.x] = column;
    });
    __syncthreads();
    const bool first = scattered.is_first(count);
    const std::int32_t own = scattered.column[threadIdx.x];
    target.pad(target.before + __syncthreads_count(first), static_cast<int>(threadIdx.x), kThreads);
    if (!first) scattered.column[threadIdx.x] = std::numeric_limits<std::int32_t>::max();
    __syncthreads();
    for_each_entry<kThreads>(a, window, [&](std::int64_t entry, int row, std::int32_t) {
      std::int32_t rank = target.before;
      for (std::int32_t i = 0; i < count; ++i) rank += scattered.column[i] < own;
      if (first) target.col_idx[rank] = own;
      target.put(entry, row, rank);
    });
  }

  template <int kThreads>
  __device__ void place_flagged(const Window& window, unsigned char* shared,
                                typename Scan<kThreads>::TempStorage& scan,
                                const Target& target) const {
    ColumnFlags<kThreads> flags(shared, window);
    flags.clear();
    for_each_entry<kThreads>(a, window,
                             [&](std::int64_t, int, std::int32_t column) { flags.set(column); });
    __syncthreads();
    const std::int32_t rank =
        flags.count(target.before, scan,
                    [&](std::int32_t at, std::int32_t column) { target.col_idx[at] = column; });
    for_each_entry<kThreads>(a, window, [&](std::int64_t entry, int row, std::int32_t column) {
      target.put(entry, row, flags.rank(column));
    });
    target.pad(rank, static_cast<int>(threadIdx.x), kThreads);
  }

  template <int kThreads>
  __device__ void place_marked(const Window& window, unsigned char* shared,
                               typename Scan<kThreads>::TempStorage& scan,
                               const Target& target) const {
    std::int32_t rank = target.before;
    for (std::int64_t first = window.first_column; first <= window.last_column;
         first += kSlab<kThreads>) {
      Bitmap<kThreads> bitmap(shared, static_cast<std::int32_t>(first), window.last_column);
      bitmap.clear();
      for_each_entry<kThreads>(a, window, [&](std::int64_t, int, std::int32_t column) {
        if (bitmap.covers(column)) bitmap.set(column);
      });
      __syncthreads();
      rank = bitmap.count(
          rank, scan, [&](std::int32_t at, std::int32_t column) { target.col_idx[at] = column; });
      for_each_entry<kThreads>(a, window, [&](std::int64_t entry, int row, std::int32_t column) {
        if (bitmap.covers(column)) target.put(entry, row, bitmap.rank(column));
      });
      __syncthreads();
    }
    target.pad(rank, static_cast<int>(threadIdx.x), kThreads);
  }
};

// The pass with the height that was chosen on the device: `chosen_rows`, or null where the host has
// chosen. False where nothing was chosen.
template <class Pass>
__device__ bool take_chosen(const std::int32_t* chosen_rows, Pass& pass) {
  if (chosen_rows == nullptr) return true;
  const std::int32_t rows = *chosen_rows;
  if (rows > 0) pass.take_height(rows);
  return rows > 0;
}

// A CTA for each window.
template <int kThreads, class Pass>
__global__ void __launch_bounds__(kThreads)
    pass_by_cta(const __grid_constant__ Pass given, const std::int32_t* chosen_rows) {
  extern __shared__ __align__(16) unsigned char shared[];
  follow_previous();
  Pass pass = given;
  if (take_chosen(chosen_rows, pass) && blockIdx.x < pass.a.windows())
    pass.template by_cta<kThreads>(blockIdx.x, shared);
}

// Parts of long windows: this many of `list`, or as many as `count` says.
struct Listed {
  const Part* list;
  std::int64_t most;
  const unsigned* count;  // or null
  std::int32_t* columns;  // of each part
};

template <int kThreads, class Pass>
__global__ void __launch_bounds__(kThreads)
    pass_of_parts(const __grid_constant__ Pass pass, const Listed longs) {
  extern __shared__ __align__(16) unsigned char shared[];
  follow_previous();
  const std::int64_t listed = longs.count == nullptr ? longs.most : *longs.count;
  for (std::int64_t i = blockIdx.x; i < listed; i += gridDim.x) {
    const Part part = longs.list[i];
    pass.template part_by_cta<kThreads>(part, longs.columns + (i - part.number), shared);
  }
}

constexpr int kWarpsOfCta = 4;

// A warp for each window. The first `ctas_of_skipped` CTAs have those that are listed as skipped;
// without such, a CTA has those of its warps one after the other.
template <class Pass>
__global__ void __launch_bounds__(kWarpsOfCta* kLanes)
    pass_by_warp(const __grid_constant__ Pass given, const std::int32_t* chosen_rows,
                 unsigned ctas_of_skipped, bool has_short_keys) {
  constexpr int kThreads = kWarpsOfCta * kLanes;
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ std::uint8_t ranks[kWarpsOfCta][ShortWindow::kMostEntries];
  __shared__ bool done[kWarpsOfCta];
  follow_previous();
  Pass pass = given;
  if (!take_chosen(chosen_rows, pass)) return;
  const bool has_skipped = blockIdx.x < ctas_of_skipped;
  const std::int64_t first = (std::int64_t{blockIdx.x} - ctas_of_skipped) * kWarpsOfCta;
  if (!has_skipped) {
    const int warp = static_cast<int>(threadIdx.x) / kLanes;
    const bool fits =
        first + warp >= pass.a.windows() ||
        (has_short_keys ? pass.template by_warp<std::uint32_t>(first + warp, ranks[warp])
                        : pass.template by_warp<std::uint64_t>(first + warp, ranks[warp]));
    if (ctas_of_skipped > 0) return;
    if (threadIdx.x % kLanes == 0) done[warp] = fits;
    __syncthreads();
  }
  // One loop for both: the code for a window of a CTA is long, and each call is a copy of it.
  const unsigned count = has_skipped ? *pass.skipped.count : kWarpsOfCta;
  const unsigned step = has_skipped ? ctas_of_skipped : 1;
#pragma unroll 1
  for (unsigned i = has_skipped ? blockIdx.x : 0; i < count; i += step)
    if (has_skipped || !done[i])
      pass.template by_cta<kThreads>(has_skipped ? pass.skipped.list[i] : first + i, shared);
}

}  // namespace spmmbench::wcsr
