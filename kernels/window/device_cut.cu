// Cuts work on the device. Where a span ends depends on where it begins, and so on all spans
// before. But windows are taken in chunks, and the first span that begins in a chunk can do so at
// 32 windows only:
//
//   walk_chunks    a warp for each chunk, a lane for each of those windows: how many spans begin in
//                  the chunk, and with which window of the next chunk the span after them begins
//   join_chunks    from chunk to chunk: where the spans really begin
//   write_spans    a CTA for each chunk: its spans
//
// Long windows are not part of spans. They are selected, sorted by length and cut one by one.

#include "common/device_arrays.hpp"
#include "window/device_cut.hpp"

#include <cuda_runtime.h>

#include <thrust/iterator/counting_iterator.h>
#include <algorithm>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>

#include "common/memory_layout.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/told_to_host.hpp"

namespace spmmbench::window {
namespace {

constexpr int kThreads = 256, kWarpLanes = 32;
constexpr int kChunk = 1024;                    // windows
constexpr int kAhead = TileCut::kMaxSpanTiles;  // windows of a span, each of a tile at least
static_assert(kAhead <= kWarpLanes, "a lane for each place where the first span may begin");

unsigned ctas_for(std::int64_t threads, int per_cta = kThreads) {
  return static_cast<unsigned>(std::max<std::int64_t>(1, (threads + per_cta - 1) / per_cta));
}
struct Windows {
  const std::int32_t* ptr;
  std::int64_t count;
  TileCut cut;

  __device__ std::int32_t tiles(std::int64_t window) const { return ptr[window + 1] - ptr[window]; }
  __device__ bool is_long(std::int64_t window) const { return tiles(window) > cut.whole_tiles; }
};

// The windows of a chunk, for a CTA.
struct Chunk {
  static constexpr int kIsSpan = 0x80;  // a span begins here if the one before ends here
  std::int32_t ptr[kChunk + kAhead + 1];
  unsigned char steps[kChunk];  // windows to where the next span begins

  __device__ std::int64_t first() const { return std::int64_t{blockIdx.x} * kChunk; }
  __device__ int size(const Windows& in) const {
    return static_cast<int>(min(std::int64_t{kChunk}, in.count - first()));
  }

  // All threads call it together.
  __device__ void read(const Windows& in) {
    const int known = static_cast<int>(min(std::int64_t{kChunk + kAhead}, in.count - first()));
    for (int i = static_cast<int>(threadIdx.x); i <= known; i += kThreads)
      ptr[i] = in.ptr[first() + i];
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < size(in); i += kThreads)
      steps[i] = static_cast<unsigned char>(steps_from(in.cut, i, known));
    __syncthreads();
  }

 private:
  __device__ int steps_from(const TileCut& cut, int begin, int known) const {
    int open = ptr[begin + 1] - ptr[begin];
    if (open > cut.whole_tiles) return 1;
    int end = begin + 1;
    for (; end < known && open < cut.span_tiles; ++end) {
      const int tiles = ptr[end + 1] - ptr[end];
      if (tiles > cut.whole_tiles || open + tiles > cut.longest_span()) break;
      open += tiles;
    }
    return (end - begin) | kIsSpan;
  }
};

// For each chunk and each of its first windows: spans that begin from there on, and the window of
// the next chunk after them.
constexpr int kNextBits = 8;

__global__ void __launch_bounds__(kThreads)
    walk_chunks(Windows in, std::int32_t* walks, std::int32_t* long_count) {
  __shared__ Chunk chunk;
  chunk.read(in);
  const int size = chunk.size(in);
  int longs = 0;
  for (int i = static_cast<int>(threadIdx.x); i < size; i += kThreads)
    longs += chunk.ptr[i + 1] - chunk.ptr[i] > in.cut.whole_tiles;
  longs = __reduce_add_sync(~0U, longs);
  if (threadIdx.x % kWarpLanes == 0 && longs > 0) atomicAdd(long_count, longs);
  if (threadIdx.x >= kWarpLanes) return;
  int at = static_cast<int>(threadIdx.x), spans = 0;
  while (at < size) {
    const int step = chunk.steps[at];
    spans += step >= Chunk::kIsSpan ? 1 : 0;
    at += step % Chunk::kIsSpan;
  }
  walks[blockIdx.x * kWarpLanes + threadIdx.x] = spans << kNextBits | (at - size);
}

// Where the first span of a chunk begins, and the spans before it.
struct Entry {
  std::int32_t window, spans;
};

struct Counted {
  std::int32_t spans, longs;
};

// One CTA.
__global__ void __launch_bounds__(kThreads)
    join_chunks(const std::int32_t* walks, std::int64_t chunks, const std::int32_t* long_count,
                Entry* entries, Counted* told) {
  constexpr int kAtOnce = 256;  // chunks
  __shared__ std::int32_t of_chunk[kAtOnce * kWarpLanes];
  __shared__ Entry found[kAtOnce];
  Entry at{};
  for (std::int64_t first = 0; first < chunks; first += kAtOnce) {
    const int count = static_cast<int>(min(std::int64_t{kAtOnce}, chunks - first));
    for (int i = static_cast<int>(threadIdx.x); i < count * kWarpLanes; i += kThreads)
      of_chunk[i] = walks[first * kWarpLanes + i];
    __syncthreads();
    if (threadIdx.x == 0)
      for (int i = 0; i < count; ++i) {
        found[i] = at;
        const std::int32_t walk = of_chunk[i * kWarpLanes + at.window];
        at.window = walk & ((1 << kNextBits) - 1);
        at.spans += walk >> kNextBits;
      }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads)
      entries[first + i] = found[i];
    __syncthreads();
  }
  if (threadIdx.x == 0) *told = {at.spans, *long_count};
}

// `spans` begins behind those of long windows.
__global__ void __launch_bounds__(kThreads)
    write_spans(Windows in, const Entry* entries, TileSpan* spans) {
  __shared__ Chunk chunk;
  __shared__ std::uint16_t begins[kChunk];
  __shared__ int count;
  chunk.read(in);
  const Entry entry = entries[blockIdx.x];
  if (threadIdx.x == 0) {
    count = 0;
    for (int at = entry.window; at < chunk.size(in);) {
      const int step = chunk.steps[at];
      if (step >= Chunk::kIsSpan) begins[count++] = static_cast<std::uint16_t>(at);
      at += step % Chunk::kIsSpan;
    }
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    const int begin = begins[i], end = begin + chunk.steps[begin] % Chunk::kIsSpan;
    spans[entry.spans + i] = {chunk.ptr[begin], chunk.ptr[end] - chunk.ptr[begin],
                              static_cast<std::int32_t>(chunk.first() + begin), -1};
  }
}

// What fills up the last CTA.
__global__ void write_empty_spans(TileSpan* spans, int count) {
  if (static_cast<int>(threadIdx.x) < count) spans[threadIdx.x] = TileSpan{};
}

struct IsLong {
  Windows in;
  __device__ bool operator()(std::int32_t window) const { return in.is_long(window); }
};

__global__ void __launch_bounds__(kThreads)
    measure_windows(Windows in, const std::int32_t* windows, std::int64_t count,
                    std::int32_t* tiles) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) tiles[i] = in.tiles(windows[i]);
}

struct LongSizes {
  std::int32_t ctas, splits, split_ctas, most_ctas;
};

constexpr int kSumThreads = 1024;

// One CTA. CTAs before each long window, which come in falling length, and of all. Those that are
// split come first, so that window i has split i.
__global__ void __launch_bounds__(kSumThreads)
    place_windows(TileCut cut, const std::int32_t* tiles, std::int64_t count,
                  std::int32_t* first_cta, LongSizes* sizes) {
  using Scan = cub::BlockScan<std::int32_t, kSumThreads>;
  __shared__ typename Scan::TempStorage temporary;
  LongSizes all{};
  for (std::int64_t first = 0; first < count; first += kSumThreads) {
    const std::int64_t own = first + threadIdx.x;
    const auto ctas = own < count ? static_cast<std::int32_t>(cut.ctas_of(tiles[own])) : 0;
    std::int32_t before = 0, of_these = 0;
    Scan(temporary).ExclusiveSum(ctas, before, of_these);
    if (own < count) first_cta[own] = all.ctas + before;
    const int splits = __syncthreads_count(ctas > 1);
    all.ctas += of_these;
    all.splits += splits;
  }
  if (threadIdx.x != 0) return;
  all.most_ctas = static_cast<std::int32_t>(cut.ctas_of(tiles[0]));
  all.split_ctas = all.ctas - (static_cast<std::int32_t>(count) - all.splits);
  *sizes = all;
}

// A warp for each long window.
__global__ void __launch_bounds__(kThreads)
    write_long_windows(Windows in, const std::int32_t* windows, const std::int32_t* first_cta,
                       std::int64_t count, TileSpan* spans, TileSplit* splits) {
  const std::int64_t own = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) / kWarpLanes;
  if (own >= count) return;
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  const std::int32_t window = windows[own];
  const std::int64_t tiles = in.tiles(window), ctas = in.cut.ctas_of(tiles);
  const std::int32_t split = ctas == 1 ? -1 : static_cast<std::int32_t>(own);
  if (split >= 0 && lane == 0) splits[own] = {first_cta[own], static_cast<std::int32_t>(ctas)};
  const std::int64_t all = ctas * in.cut.team;
  for (std::int64_t span = lane; span < all; span += kWarpLanes) {
    const std::int64_t from = tiles * span / all, to = tiles * (span + 1) / all;
    spans[std::int64_t{first_cta[own]} * in.cut.team + span] = {
        static_cast<std::int32_t>(in.ptr[window] + from),
        static_cast<std::int32_t>(to - from) | TileSpan::kShared, window, split};
  }
}

// Long windows in falling length.
struct LongWindows {
  std::int64_t count = 0;
  Buffer memory;
  std::int32_t *windows = nullptr, *first_cta = nullptr;
  LongSizes sizes{};
};

LongWindows place_long_windows(const Windows& in, std::int64_t count, Device& device) {
  const cudaStream_t stream = stream_of(device);
  LongWindows out;
  out.count = count;
  std::size_t select_bytes = 0, sort_bytes = 0;
  const auto select = [&](void* temporary, std::int32_t* to, std::int32_t* counted) {
    SPMMBENCH_CUDA(cub::DeviceSelect::If(temporary, select_bytes,
                                         thrust::counting_iterator<std::int32_t>(0), to, counted,
                                         static_cast<std::int32_t>(in.count), IsLong{in}, stream));
  };
  const auto sort = [&](void* temporary, const std::int32_t* keys, std::int32_t* sorted_keys,
                        const std::int32_t* windows) {
    SPMMBENCH_CUDA(cub::DeviceRadixSort::SortPairsDescending(
        temporary, sort_bytes, keys, sorted_keys, windows, out.windows,
        static_cast<std::int32_t>(count), 0, 31, stream));
  };
  select(nullptr, nullptr, nullptr);
  sort(nullptr, nullptr, nullptr, nullptr);
  MemoryLayout layout;
  const std::size_t each = count * sizeof(std::int32_t);
  const std::size_t found_at = layout.add(each), tiles_at = layout.add(each),
                    sorted_at = layout.add(each), windows_at = layout.add(each),
                    first_at = layout.add(each), counted_at = layout.add(sizeof(std::int32_t)),
                    temporary_at = layout.add(std::max({select_bytes, sort_bytes, std::size_t{1}}));
  out.memory = device.allocate(layout.bytes());
  out.windows = array_at<std::int32_t>(out.memory, windows_at);
  out.first_cta = array_at<std::int32_t>(out.memory, first_at);
  auto* const found = array_at<std::int32_t>(out.memory, found_at);
  auto* const tiles = array_at<std::int32_t>(out.memory, tiles_at);
  auto* const sorted = array_at<std::int32_t>(out.memory, sorted_at);
  auto* const temporary = array_at<void>(out.memory, temporary_at);
  const ToldToHost told(device);
  select(temporary, found, array_at<std::int32_t>(out.memory, counted_at));
  measure_windows<<<ctas_for(count), kThreads, 0, stream>>>(in, found, count, tiles);
  SPMMBENCH_CUDA_LAUNCHED();
  sort(temporary, tiles, sorted, found);
  place_windows<<<1, kSumThreads, 0, stream>>>(in.cut, sorted, count, out.first_cta,
                                               told.as<LongSizes>());
  SPMMBENCH_CUDA_LAUNCHED();
  device.synchronize();
  out.sizes = told.read<LongSizes>();
  return out;
}

}  // namespace

DeviceWork cut_windows(const std::int32_t* window_ptr, std::int64_t windows, const TileCut& cut,
                       Device& device) {
  DeviceWork out;
  if (windows == 0) return out;
  const cudaStream_t stream = stream_of(device);
  const Windows in{window_ptr, windows, cut};
  const unsigned chunks = ctas_for(windows, kChunk);
  MemoryLayout layout;
  const std::size_t walks_at = layout.add(chunks * kWarpLanes * sizeof(std::int32_t)),
                    entries_at = layout.add(chunks * sizeof(Entry)),
                    longs_at = layout.add(sizeof(std::int32_t));
  const Buffer scratch = device.allocate(layout.bytes());
  auto* const walks = array_at<std::int32_t>(scratch, walks_at);
  auto* const entries = array_at<Entry>(scratch, entries_at);
  auto* const long_count = array_at<std::int32_t>(scratch, longs_at);
  const ToldToHost told(device);
  device.fill_bytes(long_count, 0, sizeof *long_count);
  walk_chunks<<<chunks, kThreads, 0, stream>>>(in, walks, long_count);
  SPMMBENCH_CUDA_LAUNCHED();
  join_chunks<<<1, kThreads, 0, stream>>>(walks, chunks, long_count, entries, told.as<Counted>());
  SPMMBENCH_CUDA_LAUNCHED();
  device.synchronize();
  const Counted counted = told.read<Counted>();

  LongWindows longs;
  if (counted.longs > 0) longs = place_long_windows(in, counted.longs, device);
  const std::int64_t shared = std::int64_t{longs.sizes.ctas} * cut.team;
  const std::int64_t used = shared + counted.spans;
  out.size.spans = (used + cut.team - 1) / cut.team * cut.team;
  out.size.is_shared = counted.longs > 0;
  out.size.splits = longs.sizes.splits;
  if (out.size.splits > 0) {
    out.size.split_ctas = longs.sizes.split_ctas;
    out.size.most_ctas = longs.sizes.most_ctas;
  }
  out.spans = device.allocate(out.size.spans * sizeof(TileSpan));
  out.splits = device.allocate(out.size.splits * sizeof(TileSplit));
  auto* const spans = out.spans.as<TileSpan>();
  if (counted.longs > 0) {
    write_long_windows<<<ctas_for(counted.longs * std::int64_t{kWarpLanes}), kThreads, 0, stream>>>(
        in, longs.windows, longs.first_cta, counted.longs, spans, out.splits.as<TileSplit>());
    SPMMBENCH_CUDA_LAUNCHED();
  }
  write_spans<<<chunks, kThreads, 0, stream>>>(in, entries, spans + shared);
  SPMMBENCH_CUDA_LAUNCHED();
  if (const auto empty = static_cast<int>(out.size.spans - used); empty > 0) {
    write_empty_spans<<<1, kWarpLanes, 0, stream>>>(spans + used, empty);
    SPMMBENCH_CUDA_LAUNCHED();
  }
  return out;
}

}  // namespace spmmbench::window
