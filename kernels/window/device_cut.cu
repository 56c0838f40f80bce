// Cuts work on the device. Where a span ends depends on where it begins, and so on all spans
// before. But windows are taken in chunks, and the first span that begins in a chunk can do so at
// 32 windows only:
//
//   walk_chunks    a CTA for each chunk: from each of those windows, how many spans begin in the
//                  chunk, and with which window of the next chunk the span after them begins
//   write_work     a CTA for each chunk: goes from chunk to chunk up to its own, and writes its
//   spans
//
// Long windows are not part of spans. The first kernel lists them; more CTAs of the second find how
// many of the list come before each, by length, and how many CTAs these have, and cut them. So
// nothing is waited for but the end. Lists that would take too long to compare are selected and
// sorted by CUB.

#include "common/device_arrays.hpp"
#include "window/device_cut.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <cub/block/block_scan.cuh>
#include <map>
#include <mutex>

#include "common/memory_layout.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/told_to_host.hpp"
#include "window/launch_next.cuh"
#include "window/sorted_windows.cuh"

namespace spmmbench::window {
namespace {

constexpr int kWarpLanes = 32;
constexpr int kAhead = TileCut::kMaxSpanTiles;  // windows of a span, each of a tile at least
static_assert(kAhead <= kWarpLanes, "a lane for each place where the first span may begin");

// A window that is not part of a span.
struct alignas(16) LongWindow {
  std::int32_t window, tiles, ctas, unused;

  // In falling length, and as they come.
  __device__ bool is_before(const LongWindow& other) const {
    return tiles > other.tiles || (tiles == other.tiles && window < other.window);
  }
};
constexpr std::int64_t kMostRanked = 8192;  // long windows that are compared with each other

// Sums over the long windows of a chunk, or over all.
struct LongSums {
  std::int32_t longs, ctas, splits, most_ctas;

  __device__ void add(const LongSums& other) {
    longs += other.longs;
    ctas += other.ctas;
    splits += other.splits;
    most_ctas = max(most_ctas, other.most_ctas);
  }
};
// What the host is told.
struct Counted {
  std::int32_t spans;  // of windows that are not long
  LongSums longs;
};

// From a window: the spans that begin from there on, up to the end of a chunk or to a number of
// windows, and where the next one begins.
struct Walk {
  std::int16_t spans, next;
};

// What walk_chunks finds. A walk's `next` counts from the chunk's end.
struct ChunkWalks {
  Walk from[kWarpLanes];
  LongSums longs;
};

// The windows of a chunk, for a CTA of a thread for each.
template <int kChunk>
struct Chunk {
  std::int32_t ptr[kChunk + kAhead + 1];
  Walk walks[kChunk];
  int size;

  __device__ static std::int64_t first() { return std::int64_t{blockIdx.x} * kChunk; }

  // All threads call it together. Walks are those of a step: a span, or a long window.
  __device__ void read(const Windows& in) {
    const int own = static_cast<int>(threadIdx.x);
    const int known = static_cast<int>(min(std::int64_t{kChunk + kAhead}, in.count - first()));
    for (int i = own; i <= known; i += kChunk) ptr[i] = in.ptr[first() + i];
    if (own == 0) size = min(kChunk, known);
    __syncthreads();
    if (own < size) walks[own] = step_from(in.cut, own, known);
    __syncthreads();
  }
  __device__ int tiles(int window) const { return ptr[window + 1] - ptr[window]; }
  // Each walk goes on from where it ended: twice as many steps. All threads call it together.
  __device__ void go_on() {
    const int own = static_cast<int>(threadIdx.x);
    Walk walk{};
    if (own < size) {
      walk = walks[own];
      if (walk.next < size) {
        const Walk more = walks[walk.next];
        walk = {static_cast<std::int16_t>(walk.spans + more.spans), more.next};
      }
    }
    __syncthreads();
    if (own < size) walks[own] = walk;
    __syncthreads();
  }

 private:
  __device__ Walk step_from(const TileCut& cut, int begin, int known) const {
    int open = tiles(begin);
    if (open > cut.whole_tiles) return {0, static_cast<std::int16_t>(begin + 1)};
    int end = begin + 1;
    for (; end < known && open < cut.span_tiles; ++end) {
      const int more = tiles(end);
      if (more > cut.whole_tiles || open + more > cut.longest_span()) break;
      open += more;
    }
    return {1, static_cast<std::int16_t>(end)};
  }
};

// `longs` has room for the first kMostRanked, and `long_count` counts all.
template <int kChunk>
__global__ void __launch_bounds__(kChunk)
    walk_chunks(Windows in, ChunkWalks* out, LongWindow* longs, unsigned* long_count) {
  __shared__ Chunk<kChunk> chunk;
  __shared__ LongSums sums;
  follow_previous();
  const int own = static_cast<int>(threadIdx.x);
  if (own == 0) sums = {};
  chunk.read(in);
  if (own < chunk.size && chunk.tiles(own) > in.cut.whole_tiles) {
    const std::int32_t tiles = chunk.tiles(own);
    const auto ctas = static_cast<std::int32_t>(in.cut.ctas_of(tiles));
    const unsigned at = atomicAdd(long_count, 1U);
    if (at < kMostRanked)
      longs[at] = {static_cast<std::int32_t>(chunk.first() + own), tiles, ctas, 0};
    atomicAdd(&sums.longs, 1);
    atomicAdd(&sums.ctas, ctas);
    atomicAdd(&sums.splits, ctas > 1 ? 1 : 0);
    atomicMax(&sums.most_ctas, ctas);
  }
  for (int steps = 1; steps < kChunk; steps *= 2) chunk.go_on();
  ChunkWalks& of_chunk = out[blockIdx.x];
  if (own == 0) of_chunk.longs = sums;
  if (own >= kWarpLanes) return;
  const Walk walk = own < chunk.size ? chunk.walks[own] : Walk{0, static_cast<std::int16_t>(own)};
  of_chunk.from[own] = {walk.spans, static_cast<std::int16_t>(walk.next - chunk.size)};
}

// Where the first span of a chunk begins, and what comes before.
struct Entry {
  std::int32_t window, spans;
};

// From chunk to chunk: the entry of chunk `wanted`, of `chunks` or the end, and the sums of all
// long windows. By all threads.
template <int kThreads>
__device__ Entry walk_to(const ChunkWalks* walks, int wanted, int chunks, LongSums& longs) {
  constexpr int kAtOnce = 64;  // chunks
  __shared__ Walk of_chunk[kAtOnce][kWarpLanes];
  __shared__ Entry at;
  __shared__ LongSums sums;
  const int own = static_cast<int>(threadIdx.x);
  if (own == 0) {
    at = {};
    sums = {};
  }
  LongSums mine{};
  for (int i = own; i < chunks; i += kThreads) mine.add(walks[i].longs);
  __syncthreads();
  if (mine.longs > 0) {
    atomicAdd(&sums.longs, mine.longs);
    atomicAdd(&sums.ctas, mine.ctas);
    atomicAdd(&sums.splits, mine.splits);
    atomicMax(&sums.most_ctas, mine.most_ctas);
  }
  for (int first = 0; first < wanted; first += kAtOnce) {
    const int count = min(kAtOnce, wanted - first);
    for (int i = own; i < count * kWarpLanes; i += kThreads)
      of_chunk[i / kWarpLanes][i % kWarpLanes] = walks[first + i / kWarpLanes].from[i % kWarpLanes];
    __syncthreads();
    if (own == 0) {
      Entry now = at;
      for (int i = 0; i < count; ++i) {
        const Walk walk = of_chunk[i][now.window];
        now = {walk.next, now.spans + walk.spans};
      }
      at = now;
    }
    __syncthreads();
  }
  __syncthreads();
  longs = sums;
  return at;
}

// What all chunks have together, if they are many.
struct Joined {
  Entry* entries = nullptr;
  LongSums* longs = nullptr;
};
constexpr int kMostWalked = 256;  // chunks, of which each CTA of write_work finds its own entry
constexpr int kJoinThreads = 1024;

// One CTA.
__global__ void __launch_bounds__(kJoinThreads)
    join_chunks(const ChunkWalks* walks, int chunks, const Joined out) {
  follow_previous();
  __shared__ Walk of_chunk[kMostWalked][kWarpLanes];
  __shared__ Entry found[kMostWalked];
  const int own = static_cast<int>(threadIdx.x);
  Entry at{};
  for (int first = 0; first < chunks; first += kMostWalked) {
    const int count = min(kMostWalked, chunks - first);
    for (int i = own; i < count * kWarpLanes; i += kJoinThreads)
      of_chunk[i / kWarpLanes][i % kWarpLanes] = walks[first + i / kWarpLanes].from[i % kWarpLanes];
    __syncthreads();
    if (own == 0)
      for (int i = 0; i < count; ++i) {
        found[i] = at;
        const Walk walk = of_chunk[i][at.window];
        at = {walk.next, at.spans + walk.spans};
      }
    __syncthreads();
    for (int i = own; i < count; i += kJoinThreads) out.entries[first + i] = found[i];
  }
  LongSums longs;
  (void)walk_to<kJoinThreads>(walks, 0, chunks, longs);
  if (own == 0) *out.longs = longs;
}

// `spans` begins behind those of long windows. By a CTA, with a thread for each window.
template <int kChunk>
__device__ void write_spans(const Windows& in, const Entry& entry, TileSpan* spans) {
  __shared__ Chunk<kChunk> chunk;
  __shared__ bool is_begin[kChunk];
  __shared__ typename cub::BlockScan<int, kChunk>::TempStorage scan;
  const int own = static_cast<int>(threadIdx.x);
  chunk.read(in);
  const Walk step = own < chunk.size ? chunk.walks[own] : Walk{};
  is_begin[own] = own == entry.window && own < chunk.size;
  // With every turn those that are this many steps from the entry: 1, then 2 and 3, then 4 to 7 ..
  for (int steps = 1; steps < kChunk; steps *= 2) {
    __syncthreads();
    const bool is_reached = is_begin[own];
    const int next = own < chunk.size ? chunk.walks[own].next : kChunk;
    __syncthreads();
    if (is_reached && next < chunk.size) is_begin[next] = true;
    chunk.go_on();
  }
  __syncthreads();
  const bool writes = own < chunk.size && is_begin[own] && step.spans > 0;
  int before = 0;
  cub::BlockScan<int, kChunk>(scan).ExclusiveSum(writes ? 1 : 0, before);
  if (writes)
    spans[entry.spans + before] = {chunk.ptr[own], chunk.ptr[step.next] - chunk.ptr[own],
                                   static_cast<std::int32_t>(chunk.first() + own), -1};
}

// A long window, by a warp. `own`: its number by falling length.
__device__ void write_long_window(const Windows& in, std::int32_t window, std::int32_t first_cta,
                                  std::int32_t own, TileSpan* spans, TileSplit* splits) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  const std::int64_t tiles = in.tiles(window), ctas = in.cut.ctas_of(tiles);
  const std::int32_t split = ctas == 1 ? -1 : own;
  if (split >= 0 && lane == 0) splits[own] = {first_cta, static_cast<std::int32_t>(ctas)};
  const std::int64_t all = ctas * in.cut.team;
  for (std::int64_t span = lane; span < all; span += kWarpLanes) {
    const std::int64_t from = tiles * span / all, to = tiles * (span + 1) / all;
    spans[std::int64_t{first_cta} * in.cut.team + span] = {
        static_cast<std::int32_t>(in.ptr[window] + from),
        static_cast<std::int32_t>(to - from) | TileSpan::kShared, window, split};
  }
}

// By a CTA: 32 of the windows of the list, from `first` on. Each warp compares them with a part of
// all.
template <int kThreads>
__device__ void write_long_windows(const Windows& in, const LongWindow* longs, int count, int first,
                                   TileSpan* spans, TileSplit* splits) {
  constexpr int kWarps = kThreads / kWarpLanes, kAtOnce = 4;
  __shared__ std::int32_t before[kWarpLanes], ctas[kWarpLanes];
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  const int warp = static_cast<int>(threadIdx.x) / kWarpLanes;
  if (warp == 0) before[lane] = ctas[lane] = 0;
  __syncthreads();
  const LongWindow own = longs[min(first + lane, count - 1)];
  int windows_before = 0, ctas_before = 0;
#pragma unroll kAtOnce
  for (int i = warp; i < count; i += kWarps) {
    const LongWindow other = longs[i];
    const bool is_before = other.is_before(own);
    windows_before += is_before ? 1 : 0;
    ctas_before += is_before ? other.ctas : 0;
  }
  atomicAdd(before + lane, windows_before);
  atomicAdd(ctas + lane, ctas_before);
  __syncthreads();
  for (int i = warp; i < min(kWarpLanes, count - first); i += kWarps)
    write_long_window(in, longs[first + i].window, ctas[i], before[i], spans, splits);
}

// The first `chunks` CTAs have the chunks, the others long windows. Sets `long_count` back to zero.
// `places`: of all windows; or null, and they are compared, if these are no more than kMostRanked.
template <int kChunk>
__global__ void __launch_bounds__(kChunk)
    write_work(Windows in, int chunks, const ChunkWalks* walks, const Joined joined,
               const LongWindow* longs, LongPlaces places, TileSpan* spans, TileSplit* splits,
               unsigned* long_count, Counted* told) {
  follow_previous();
  const int own = static_cast<int>(threadIdx.x), cta = static_cast<int>(blockIdx.x);
  const int own_chunk = cta < chunks ? cta : 0;
  LongSums sums;
  Entry entry;
  if (joined.entries == nullptr) {
    entry = walk_to<kChunk>(walks, own_chunk, chunks, sums);
  } else {
    entry = joined.entries[own_chunk];
    sums = *joined.longs;
  }
  const bool is_ranked = sums.longs <= kMostRanked;
  if (cta == 0 && own == 0) *long_count = 0;
  if (cta >= chunks) {
    const int number = cta - chunks;
    if (places.windows == nullptr) {
      if (is_ranked && number * kWarpLanes < sums.longs)
        write_long_windows<kChunk>(in, longs, sums.longs, number * kWarpLanes, spans, splits);
      return;
    }
    constexpr int kWarps = kChunk / kWarpLanes;
    const int ctas = static_cast<int>(gridDim.x) - chunks;
    for (int i = number * kWarps + own / kWarpLanes; i < sums.longs; i += ctas * kWarps)
      write_long_window(in, places.windows[i], places.first_cta[i], i, spans, splits);
    return;
  }
  const std::int32_t shared = sums.ctas * in.cut.team;
  if (cta + 1 == chunks && own == 0) {
    const Walk last = walks[cta].from[entry.window];
    const std::int32_t of_windows = entry.spans + last.spans;
    *told = {of_windows, sums};
    // Fills the last CTA up.
    const std::int32_t used = shared + of_windows, team = in.cut.team;
    for (std::int32_t i = used; i < (used + team - 1) / team * team; ++i) spans[i] = TileSpan{};
  }
  write_spans<kChunk>(in, entry, spans + shared);
}

// How much there can be at most.
struct Most {
  Most(const WindowSizes& sizes, const TileCut& cut) {
    const std::int64_t team = cut.team;
    if (sizes.longest > cut.whole_tiles)
      longs = std::min(sizes.windows, sizes.tiles / (cut.whole_tiles + 1));
    if (sizes.longest > team * cut.part_tiles)
      splits = std::min(sizes.windows, sizes.tiles / (team * cut.part_tiles + 1));
    const std::int64_t of_splits = splits > 0 ? sizes.tiles / cut.split_tiles + splits * team : 0;
    spans = sizes.windows + (team - 1) * longs + of_splits + team;
  }
  std::int64_t longs = 0, splits = 0, spans = 0;
};

WorkSize size_of(const Counted& counted, const TileCut& cut) {
  const LongSums& longs = counted.longs;
  WorkSize out;
  const std::int64_t used = std::int64_t{longs.ctas} * cut.team + counted.spans;
  out.spans = (used + cut.team - 1) / cut.team * cut.team;
  out.is_shared = longs.longs > 0;
  out.splits = longs.splits;
  if (out.splits > 0) {
    out.split_ctas = longs.ctas - (longs.longs - longs.splits);
    out.most_ctas = longs.most_ctas;
  }
  return out;
}

template <int kChunk>
DeviceWork cut_in_chunks(const std::int32_t* window_ptr, const WindowSizes& sizes,
                         const TileCut& cut, Stream stream, Device& device) {
  constexpr unsigned kMostSortedCtas = 256;
  const Windows in{window_ptr, sizes.windows, cut};
  const unsigned chunks = ctas_for(sizes.windows, kChunk);
  const Most most(sizes, cut);
  const std::int64_t ranked = std::min(most.longs, kMostRanked);
  MemoryLayout layout;
  const std::size_t walks_at = layout.add(chunks * sizeof(ChunkWalks)),
                    entries_at = layout.add(chunks * sizeof(Entry)),
                    sums_at = layout.add(sizeof(LongSums)),
                    longs_at = layout.add(ranked * sizeof(LongWindow));
  const Buffer scratch = device.allocate(layout.bytes());
  auto* const walks = array_at<ChunkWalks>(scratch, walks_at);
  auto* const listed = array_at<LongWindow>(scratch, longs_at);
  DeviceWork out;
  out.spans = device.allocate(most.spans * sizeof(TileSpan));
  out.splits = device.allocate(most.splits * sizeof(TileSplit));
  const ToldToHost there(device);
  launch_next(walk_chunks<kChunk>, chunks, kChunk, 0, stream, in, walks, listed, there.arrivals());
  Joined joined;
  if (chunks > kMostWalked) {
    joined = {array_at<Entry>(scratch, entries_at), array_at<LongSums>(scratch, sums_at)};
    launch_next(join_chunks, 1, kJoinThreads, 0, stream, walks, static_cast<int>(chunks), joined);
  }
  const auto write = [&](unsigned long_ctas, const LongPlaces& places) {
    launch_next(write_work<kChunk>, chunks + long_ctas, kChunk, 0, stream, in,
                static_cast<int>(chunks), walks, joined, listed, places, out.spans.as<TileSpan>(),
                out.splits.as<TileSplit>(), there.arrivals(), there.as<Counted>());
    SPMMBENCH_CUDA(cudaStreamSynchronize(static_cast<cudaStream_t>(stream.handle)));
  };
  write(ranked > 0 ? ctas_for(ranked, kWarpLanes) : 0, {});
  if (const std::int32_t longs = there.read<Counted>().longs.longs; longs > kMostRanked) {
    LongPlaces places;
    const Buffer sorted = sort_windows(in, longs, places, stream, device);
    write(std::min(ctas_for(longs, kWarpLanes), kMostSortedCtas), places);
  }
  out.size = size_of(there.read<Counted>(), cut);
  return out;
}

// Beside that of the device. It is kept until the process ends.
Stream second_stream(const Device& device) {
  static std::mutex mutex;
  static auto& all = *new std::map<int, cudaStream_t>;
  const std::scoped_lock lock(mutex);
  const auto [entry, is_new] = all.try_emplace(device.info().index);
  if (is_new) SPMMBENCH_CUDA(cudaStreamCreateWithFlags(&entry->second, cudaStreamNonBlocking));
  return {entry->second};
}

}  // namespace

DeviceWork cut_windows(const std::int32_t* window_ptr, const WindowSizes& sizes, const TileCut& cut,
                       bool beside, Device& device) {
  constexpr std::int64_t kFewWindows = 32'768;  // joining more short chunks would take longer
  if (sizes.windows == 0) return {};
  const Stream stream = beside ? second_stream(device) : device.stream();
  return sizes.windows <= kFewWindows ? cut_in_chunks<256>(window_ptr, sizes, cut, stream, device)
                                      : cut_in_chunks<1024>(window_ptr, sizes, cut, stream, device);
}

}  // namespace spmmbench::window
