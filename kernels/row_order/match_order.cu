// The row order `match` on the device. src/reorder/match.hpp has the rules, so that both give the
// same order: nothing depends on which thread is first.
//
// A level has clusters, and an entry for each column of each cluster:
//
//   entries by cluster   (cluster, column)   sorted by cluster, then column
//   entries by column    (column, cluster)   sorted by column, then cluster: the lists
//
// 1. The entries are sorted by column. The sort is stable, so each list is ascending.
// 2. Each cluster without a partner counts how many columns it shares with which others, in a hash
//    table in shared memory, and keeps the most similar ones: a warp for most clusters, a CTA for
//    those that read many places of lists.
// 3. Rounds: each cluster names the first of these that has no partner; two that name each other
//    are partners.
// 4. Partners are joined. The entries get the new clusters' numbers and are sorted by them; what
//    both had is there twice, side by side, and one is dropped.

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <utility>

#include "gpu/cuda_check.hpp"
#include "reorder/match.hpp"
#include "row_order/match_order.hpp"

namespace spmmbench {
namespace {

using match::Partner;

constexpr int kThreads = 256;
constexpr unsigned kWarp = 0xFFFFFFFFU;
constexpr std::int32_t kNone = -1;

unsigned ctas_for(std::int64_t threads) {
  return static_cast<unsigned>(std::max<std::int64_t>(1, (threads + kThreads - 1) / kThreads));
}

__device__ std::int64_t thread_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// The first of `count` ascending numbers that is not below `value`.
template <class T>
__device__ std::int32_t lower_bound(const T* numbers, std::int32_t count, T value) {
  std::int32_t low = 0;
  while (count > 0) {
    const std::int32_t half = count / 2;
    if (numbers[low + half] < value) {
      low += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return low;
}

// A level as the kernels read it.
struct Level {
  const std::int32_t* ptr;       // [clusters + 1], into columns
  const std::int32_t* columns;   // of each cluster, ascending
  const std::int32_t* list_ptr;  // [columns of A + 1], into lists
  const std::int32_t* lists;     // of each column the clusters that have it, ascending
  std::int32_t clusters;

  __device__ std::int32_t length(std::int32_t i) const { return ptr[i + 1] - ptr[i]; }
};

// ---- The first level: rows that are not empty ----

__global__ void mark_filled(DeviceCsr a, std::int32_t* is_filled) {
  const std::int64_t row = thread_index();
  if (row <= a.rows) is_filled[row] = row < a.rows && a.row_ptr[row + 1] > a.row_ptr[row] ? 1 : 0;
}

// `before`: filled rows before each. Empty rows go to the end of the order.
__global__ void number_rows(DeviceCsr a, const std::int32_t* before, std::int32_t* ptr,
                            std::int32_t* rows, std::int32_t* order) {
  const std::int64_t row = thread_index();
  if (row > a.rows) return;
  const std::int32_t own = before[row], filled = before[a.rows];
  if (row == a.rows || a.row_ptr[row + 1] > a.row_ptr[row])
    ptr[own] = static_cast<std::int32_t>(a.row_ptr[row]);
  if (row == a.rows) return;
  if (a.row_ptr[row + 1] > a.row_ptr[row]) rows[own] = static_cast<std::int32_t>(row);
  else order[filled + (row - own)] = static_cast<std::int32_t>(row);
}

// The cluster of every entry. A warp takes kEntries at a time, which few clusters have.
constexpr int kEntries = 256;
__global__ void number_entries(const std::int32_t* ptr, std::int32_t clusters, std::int32_t entries,
                               std::int32_t* owner) {
  const std::int64_t first = thread_index() / 32 * kEntries;
  const int lane = threadIdx.x % 32;
  if (first >= entries) return;
  const auto begin = static_cast<std::int32_t>(first);
  const std::int32_t end = min(begin + kEntries, entries);
  const auto cluster_of = [&](std::int32_t entry, std::int32_t low, std::int32_t high) {
    return low + lower_bound(ptr + low + 1, high - low, entry + 1);
  };
  const std::int32_t low = cluster_of(begin, 0, clusters - 1);
  const std::int32_t high = cluster_of(end - 1, low, clusters - 1);
  for (std::int32_t entry = begin + lane; entry < end; entry += 32)
    owner[entry] = cluster_of(entry, low, high);
}

// Where each number begins among ascending ones.
__global__ void find_starts(const std::int32_t* numbers, std::int32_t count, std::int64_t most,
                            std::int32_t* ptr) {
  const std::int64_t number = thread_index();
  if (number <= most) ptr[number] = lower_bound(numbers, count, static_cast<std::int32_t>(number));
}

// ---- Partners ----

// What a cluster reads of a column's list.
struct Stretch {
  std::int32_t begin = 0, count = 0, weight = 0;
};

__device__ Stretch stretch_of(const Level& all, std::int32_t own, std::int32_t column) {
  const std::int32_t begin = all.list_ptr[column], length = all.list_ptr[column + 1] - begin;
  const std::int32_t before =
      length <= match::kMostPlaces ? 0 : lower_bound(all.lists + begin, length, own);
  const match::Part part = match::part_of_list(length, before);
  return {begin + part.begin, part.end - part.begin, part.weight};
}

// The stretch of the i-th column that a cluster looks at.
__device__ Stretch used_stretch(const Level& all, std::int32_t own, std::int32_t i,
                                std::int32_t columns, std::int32_t used) {
  if (i >= used) return {};
  return stretch_of(all, own, all.columns[all.ptr[own] + match::used_column(i, columns, used)]);
}

// Slots of the tables that warps and CTAs have.
constexpr int kFewSlots = 256, kMoreSlots = 1024, kMostSlots = 8192;

// Adds up weights by cluster, open addressing, and lists the slots that are in use.
template <int kSlots>
struct Table {
  std::int32_t cluster[kSlots];
  std::int32_t weight[kSlots];
  std::uint16_t slot[kSlots];
  std::int32_t count;

  // More would make searches long.
  static constexpr std::int32_t kMost = kSlots / 4 * 3;

  __device__ void begin(int thread, int threads) {
    for (int at = thread; at < kSlots; at += threads) cluster[at] = kNone, weight[at] = 0;
    if (thread == 0) count = 0;
  }
  // Before it, and before count is set to 0 by one of the threads, all of them wait.
  __device__ void clear(int thread, int threads) {
    for (int i = thread; i < count; i += threads) cluster[slot[i]] = kNone, weight[slot[i]] = 0;
  }
  // The slot where the weight was added, and whether it was free; no slot where all that are looked
  // at are taken.
  struct Added {
    int slot;
    bool is_new;
  };
  __device__ Added add(std::int32_t other, std::uint64_t hash, std::int32_t of_weight) {
    // A table that is certain to have room is searched to its end.
    constexpr int kTries = kSlots == kFewSlots ? kSlots : 32;
    for (int tries = 0; tries < kTries; ++tries) {
      const auto at = static_cast<int>((hash + tries) % kSlots);
      const std::int32_t there = atomicCAS(&cluster[at], kNone, other);
      if (there != kNone && there != other) continue;
      atomicAdd(&weight[at], of_weight);
      return {at, there == kNone};
    }
    return {kNone, false};
  }
  // Lists the new slots of a warp's lanes, which call it together.
  __device__ void list(const Added& added) {
    const unsigned lanes = __ballot_sync(kWarp, added.is_new);
    if (lanes == 0) return;
    const int lane = threadIdx.x % 32;
    std::int32_t first = 0;
    if (lane == 0) first = atomicAdd(&count, __popc(lanes));
    first = __shfl_sync(kWarp, first, 0);
    if (added.is_new)
      slot[first + __popc(lanes & ((1U << lane) - 1U))] = static_cast<std::uint16_t>(added.slot);
  }
};

__device__ Partner none() { return {0, INT_MAX}; }

// The best of the warp's partners.
__device__ Partner best_of_warp(const Partner& own) {
  const auto high = static_cast<unsigned>(own.rank >> 32), low = static_cast<unsigned>(own.rank);
  const unsigned most_high = __reduce_max_sync(kWarp, high);
  const unsigned most_low = __reduce_max_sync(kWarp, high == most_high ? low : 0U);
  const bool is_best = high == most_high && low == most_low;
  const int cluster = __reduce_min_sync(kWarp, is_best ? own.cluster : INT_MAX);
  return {std::uint64_t{most_high} << 32 | most_low, cluster};
}

__device__ Partner from_lane(const Partner& own, int lane) {
  return {__shfl_sync(kWarp, own.rank, lane), __shfl_sync(kWarp, own.cluster, lane)};
}

// The best partners that a warp has seen, best first: lane i has the i-th.
struct Best {
  Partner own = none();  // of lanes below kPartners

  // One partner from each lane, or none().
  __device__ void add(Partner mine) {
    const int lane = threadIdx.x % 32;
    Partner last = from_lane(own, match::kPartners - 1);
    while (__any_sync(kWarp, mine.before(last))) {
      const Partner best = best_of_warp(mine);
      if (mine.cluster == best.cluster) mine = none();
      const int place = __popc(__ballot_sync(kWarp, lane < match::kPartners && own.before(best)));
      const Partner above = from_lane(own, lane == 0 ? 0 : lane - 1);
      if (lane == place) own = best;
      else if (lane > place && lane < match::kPartners) own = above;
      last = from_lane(own, match::kPartners - 1);
    }
  }
};

struct Partners {
  std::int32_t* of;         // [clusters][kPartners], kNone after the last
  std::int32_t* longer[2];  // clusters that are left to a kernel with larger tables
  std::int32_t* count;      // how many, [2]
};

// One cluster and what its threads look at.
struct Search {
  const Level& all;
  const std::int32_t* mate;
  std::int32_t own, columns, used;

  __device__ Search(const Level& level, const std::int32_t* mates, std::int32_t cluster)
      : all(level),
        mate(mates),
        own(cluster),
        columns(level.length(cluster)),
        used(match::used_columns(columns)) {}

  // Adds the clusters that share some of the columns to the table: the warp takes columns [first,
  // first + count), of at most 32, place by place of their lists. Of several sweeps each takes the
  // clusters of its own. False where the table is too full.
  template <int kSlots>
  __device__ bool read(Table<kSlots>& table, std::int32_t first, std::int32_t count, unsigned sweep,
                       unsigned sweeps) const {
    const int lane = threadIdx.x % 32;
    const Stretch mine =
        lane < count ? used_stretch(all, own, first + lane, columns, used) : Stretch{};
    std::int32_t end = mine.count;  // of this lane's places among those of the warp
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const std::int32_t before = __shfl_up_sync(kWarp, end, distance);
      if (lane >= distance) end += before;
    }
    const std::int32_t places = __shfl_sync(kWarp, end, 31);
    for (std::int32_t from = 0; from < places; from += 32) {
      const std::int32_t place = from + lane;
      int source = 0;  // the lane whose stretch has the place
#pragma unroll
      for (int step = 16; step > 0; step /= 2)
        if (__shfl_sync(kWarp, end, source + step - 1) <= place) source += step;
      const std::int32_t begin = __shfl_sync(kWarp, mine.begin, source);
      const std::int32_t length = __shfl_sync(kWarp, mine.count, source);
      const std::int32_t weight = __shfl_sync(kWarp, mine.weight, source);
      const std::int32_t last = __shfl_sync(kWarp, end, source);
      typename Table<kSlots>::Added added{0, false};
      if (place < places) {
        const std::int32_t other = all.lists[begin + place - (last - length)];
        const std::uint64_t hash = mix64(other);
        if (other != own && mate[other] == kNone &&
            (sweeps == 1 || static_cast<unsigned>(hash >> 32) % sweeps == sweep))
          added = table.add(other, hash, weight);
      }
      __syncwarp();
      table.list(added);
      const bool fits = added.slot != kNone && table.count <= Table<kSlots>::kMost;
      if (!__all_sync(kWarp, fits)) return false;
    }
    return true;
  }

  // The i-th that is in the table, or none.
  template <int kSlots>
  __device__ Partner partner(const Table<kSlots>& table, int i) const {
    if (i >= table.count) return none();
    const int slot = table.slot[i];
    const std::int32_t other = table.cluster[slot];
    return match::rank_partner(own, other, table.weight[slot], columns, used, all.length(other));
  }

  __device__ void keep(const Partners& out, const Best& best) const {
    const int lane = threadIdx.x % 32;
    if (lane < match::kPartners)
      out.of[std::int64_t{own} * match::kPartners + lane] =
          best.own.rank == 0 ? kNone : best.own.cluster;
  }
};

template <int kSlots>
constexpr int kWarpThreads = kSlots == kFewSlots ? 256 : 128;
// Clusters that read more places of lists meet more clusters than the warps' tables hold. Below it
// that is tried, since most places repeat the same clusters.
constexpr std::int32_t kMostWarpPlaces = 4096;

// A warp for each cluster. What does not fit in its table is left to the next kernel.
template <int kSlots>
__global__ void __launch_bounds__(kWarpThreads<kSlots>)
    find_partners(const __grid_constant__ Level all, const std::int32_t* mate, Partners out) {
  constexpr bool kIsFirst = kSlots == kFewSlots;
  constexpr int kWarps = kWarpThreads<kSlots> / 32;
  constexpr std::int32_t kMostPlaces = kIsFirst ? Table<kSlots>::kMost : kMostWarpPlaces;
  __shared__ Table<kSlots> tables[kWarps];
  Table<kSlots>& table = tables[threadIdx.x / 32];
  const int lane = threadIdx.x % 32;
  table.begin(lane, 32);
  __syncwarp();
  const std::int32_t end = kIsFirst ? all.clusters : out.count[0];
  const auto stride = static_cast<std::int32_t>(gridDim.x) * kWarps;
  for (auto at = static_cast<std::int32_t>(thread_index() / 32); at < end; at += stride) {
    const std::int32_t own = kIsFirst ? at : out.longer[0][at];
    if (mate[own] != kNone) continue;
    const Search search(all, mate, own);
    std::int32_t places = search.used;
    if (places <= kMostPlaces) {
      places = 0;
      for (std::int32_t i = lane; i < search.used; i += 32)
        places += used_stretch(all, own, i, search.columns, search.used).count;
      places = __reduce_add_sync(kWarp, places);
    }
    bool fits = places <= kMostPlaces;
    for (std::int32_t first = 0; fits && first < search.used; first += 32) {
      fits = search.read(table, first, min(32, search.used - first), 0, 1);
      __syncwarp();
    }
    if (fits) {
      Best best;
      for (std::int32_t i = 0; i < table.count; i += 32) best.add(search.partner(table, i + lane));
      search.keep(out, best);
    } else if (lane == 0) {
      constexpr int kNext = kIsFirst ? 0 : 1;
      out.longer[kNext][atomicAdd(&out.count[kNext], 1)] = own;
    }
    table.clear(lane, 32);
    __syncwarp();
    if (lane == 0) table.count = 0;
    __syncwarp();
  }
}

constexpr int kCtaThreads = 512;

// A CTA for each of the others. Where not even its table holds all that is met, these are counted
// in twice as many sweeps, each of a part of them.
__global__ void __launch_bounds__(kCtaThreads)
    find_partners_by_cta(const __grid_constant__ Level all, const std::int32_t* mate,
                         Partners out) {
  constexpr int kWarps = kCtaThreads / 32;
  extern __shared__ __align__(16) unsigned char memory[];
  auto& table = *reinterpret_cast<Table<kMostSlots>*>(memory);
  __shared__ Partner best_of[kWarps][match::kPartners];
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  table.begin(thread, kCtaThreads);
  const auto clear = [&] {
    __syncthreads();
    table.clear(thread, kCtaThreads);
    __syncthreads();
    if (thread == 0) table.count = 0;
    __syncthreads();
  };
  const std::int32_t count = out.count[1];
  for (auto at = static_cast<std::int32_t>(blockIdx.x); at < count;
       at += static_cast<std::int32_t>(gridDim.x)) {
    const Search search(all, mate, out.longer[1][at]);
    // Columns of a warp at a time. All warps take as many turns.
    const std::int32_t part = min(32, (search.used + kWarps - 1) / kWarps);
    Best best;
    bool done = false;
    for (unsigned sweeps = 1; !done; sweeps *= 2) {
      best = {};
      done = true;
      for (unsigned sweep = 0; done && sweep < sweeps; ++sweep) {
        clear();
        for (std::int32_t first = 0; done && first < search.used; first += kWarps * part) {
          const std::int32_t own = first + warp * part;
          const bool fits = search.read(table, own, min(part, search.used - own), sweep, sweeps);
          done = __syncthreads_and(fits);
        }
        for (std::int32_t i = 0; done && i < table.count; i += kCtaThreads)
          best.add(search.partner(table, i + thread));
      }
    }
    clear();
    if (lane < match::kPartners) best_of[warp][lane] = best.own;
    __syncthreads();
    if (warp == 0) {
      for (int i = 0; i < kWarps * match::kPartners; i += 32) {
        const Partner other = (&best_of[0][0])[i + lane];
        best.add(i + lane < match::kPartners ? none() : other);  // its own are there already
      }
      search.keep(out, best);
    }
  }
}

// ---- Rounds ----

// Who has whom after a round, and whom each without a partner named in it.
struct Round {
  std::int32_t *mate, *named;

  // The partner after the round.
  __device__ std::int32_t mate_of(std::int32_t i) const {
    if (mate[i] != kNone) return mate[i];
    const std::int32_t other = named[i];
    return other != kNone && named[other] == i ? other : kNone;
  }
};

__global__ void begin_rounds(std::int32_t clusters, Round all, std::int32_t* longer) {
  const std::int64_t i = thread_index();
  if (i < 2) longer[i] = 0;
  if (i < clusters) all.mate[i] = all.named[i] = kNone;
}

// All rounds of a pass, in one cooperative launch; afterwards `rounds[1]` has the partners.
// `counts`: whether a cluster has none, and in the upper half whether it is the first of two
// partners.
struct Rounds {
  Round rounds[2];
  const std::int32_t* partners;
  std::uint64_t* counts;
  std::int32_t* longer;
  std::int32_t clusters;
};
__global__ void __launch_bounds__(kThreads) hold_rounds(const __grid_constant__ Rounds all) {
  static_assert(match::kRounds % 2 == 0, "the last round leaves its result in rounds[0]");
  const auto grid = cooperative_groups::this_grid();
  const auto first = static_cast<std::int32_t>(thread_index());
  const auto stride = static_cast<std::int32_t>(gridDim.x * blockDim.x);
  if (first < 2) all.longer[first] = 0;
  for (int round = 0; round < match::kRounds; ++round) {
    const Round& before = all.rounds[round % 2];
    const Round& after = all.rounds[1 - round % 2];
    for (std::int32_t i = first; i < all.clusters; i += stride) {
      const std::int32_t mate = before.mate_of(i);
      std::int32_t named = kNone;
      for (int at = 0; mate == kNone && named == kNone && at < match::kPartners; ++at) {
        const std::int32_t other = all.partners[std::int64_t{i} * match::kPartners + at];
        if (other == kNone) break;
        if (before.mate_of(other) == kNone) named = other;
      }
      after.mate[i] = mate;
      after.named[i] = named;
    }
    grid.sync();
  }
  // Settles the last round, in the other arrays, since others still read these.
  const Round &before = all.rounds[0], &after = all.rounds[1];
  for (std::int32_t i = first; i <= all.clusters; i += stride) {
    const std::int32_t mate = i < all.clusters ? before.mate_of(i) : 0;
    all.counts[i] = i == all.clusters ? 0
                    : mate == kNone   ? 1
                    : mate > i        ? std::uint64_t{1} << 32
                                      : 0;
    if (i == all.clusters) continue;
    after.mate[i] = mate;
    after.named[i] = kNone;
  }
}

// ---- Joining ----

__global__ void list_unmatched(std::int32_t clusters, const std::int32_t* mate,
                               const std::uint64_t* before, std::int32_t* unmatched) {
  const auto i = static_cast<std::int32_t>(thread_index());
  if (i < clusters && mate[i] == kNone) unmatched[static_cast<std::uint32_t>(before[i])] = i;
}

struct Joining {
  const std::int32_t* mate;
  const std::uint64_t* before;  // sums of `counts` before each cluster, and of all
  const std::int32_t* unmatched;
  std::int32_t clusters;

  __device__ std::int32_t partner(std::int32_t i) const {
    if (mate[i] != kNone) return mate[i];
    const auto rank = static_cast<std::uint32_t>(before[i]), other = rank ^ 1U;
    return other < static_cast<std::uint32_t>(before[clusters]) ? unmatched[other] : kNone;
  }
  // How many clusters before `i` are the first of two.
  __device__ std::int32_t firsts_before(std::int32_t i) const {
    const auto matched = static_cast<std::int32_t>(before[i] >> 32);
    const std::uint32_t left = static_cast<std::uint32_t>(before[i]);
    const std::uint32_t pairs = static_cast<std::uint32_t>(before[clusters]) / 2;
    return matched + static_cast<std::int32_t>(min((left + 1) / 2, pairs));
  }
};

// The new number of every cluster, clusters / 2 for the one that is left over, and the rows in
// their new places. `left`: where in the order the rows of that one go.
__global__ void number_clusters(Joining all, const std::int32_t* rows, std::int32_t rows_of_one,
                                std::int32_t* number, std::int32_t* new_rows, std::int32_t* left) {
  const auto i = static_cast<std::int32_t>(thread_index());
  if (i >= all.clusters) return;
  const std::int32_t other = all.partner(i);
  const bool is_first = other > i;
  const std::int32_t own =
      other == kNone ? all.clusters / 2 : all.firsts_before(is_first ? i : other);
  number[i] = own;
  std::int32_t* const to =
      other == kNone ? left : new_rows + (2 * std::int64_t{own} + (is_first ? 0 : 1)) * rows_of_one;
  for (std::int32_t row = 0; row < rows_of_one; ++row)
    to[row] = rows[std::int64_t{i} * rows_of_one + row];
}

__global__ void renumber_entries(std::int32_t entries, const std::int32_t* number,
                                 const std::int32_t* cluster, std::int32_t* new_cluster) {
  const std::int64_t at = thread_index();
  if (at < entries) new_cluster[at] = number[cluster[at]];
}

__global__ void mark_new(std::int32_t entries, const std::int32_t* cluster,
                         const std::int32_t* column, std::int32_t clusters, std::int32_t* is_new) {
  const std::int64_t at = thread_index();
  if (at > entries) return;
  is_new[at] = at < entries && cluster[at] < clusters &&
                       (at == 0 || cluster[at] != cluster[at - 1] || column[at] != column[at - 1])
                   ? 1
                   : 0;
}

__global__ void keep_new(std::int32_t entries, const std::int32_t* cluster,
                         const std::int32_t* column, std::int32_t clusters,
                         const std::int32_t* before, std::int32_t* new_cluster,
                         std::int32_t* new_column, std::int32_t* ptr) {
  const std::int64_t at = thread_index();
  if (at == 0) ptr[clusters] = before[entries];
  if (at >= entries || before[at + 1] == before[at]) return;
  const std::int32_t to = before[at];
  new_cluster[to] = cluster[at];
  new_column[to] = column[at];
  if (at == 0 || cluster[at] != cluster[at - 1]) ptr[cluster[at]] = to;
}

// ---- Host ----

// Bits of the numbers up to `most`.
int bits_of(std::int64_t most) {
  return std::max(1, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(most))));
}

class Matching {
 public:
  Matching(const DeviceCsr& a, Device& device)
      : a_(a), device_(device), stream_(static_cast<cudaStream_t>(device.stream().handle)) {
    rows_ = a.rows;
    entries_ = static_cast<std::int32_t>(a.nnz);
    std::size_t sort = 0, scan = 0, scan_entries = 0;
    sort_pairs(nullptr, sort, nullptr, nullptr, nullptr, nullptr, 32);
    SPMMBENCH_CUDA(cub::DeviceScan::ExclusiveSum(
        nullptr, scan, static_cast<std::uint64_t*>(nullptr), static_cast<std::uint64_t*>(nullptr),
        static_cast<std::int32_t>(rows_ + 1), stream_));
    SPMMBENCH_CUDA(cub::DeviceScan::ExclusiveSum(
        nullptr, scan_entries, static_cast<std::int32_t*>(nullptr),
        static_cast<std::int32_t*>(nullptr), std::max<std::int32_t>(entries_, rows_) + 1, stream_));
    temporary_bytes_ = std::max({sort, scan, scan_entries});
    SPMMBENCH_CUDA(cudaFuncSetAttribute(find_partners_by_cta,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        sizeof(Table<kMostSlots>)));
    // Two passes: how much, then where.
    lay_out(nullptr);
    memory_ = device.allocate(bytes_);
    lay_out(memory_.as<char>());
  }

  Buffer order() {
    Buffer order = device_.allocate(rows_ * sizeof(std::int32_t));
    auto* const out = order.as<std::int32_t>();
    std::int32_t clusters = number_filled_rows(out);
    std::int32_t rows_of_one = 1;
    std::int64_t end = clusters;  // of the places that no cluster left over has taken
    for (int level = 0; level < match::kLevels && clusters > 1; ++level) {
      sort_lists(clusters);
      find_mates(clusters);
      const std::int32_t half = clusters / 2;
      if (clusters % 2 == 1) end -= rows_of_one;
      join(clusters, rows_of_one, out + end);
      rows_of_one *= 2;
      if (level + 1 < match::kLevels && half > 1) renumber(half);
      clusters = half;
    }
    SPMMBENCH_CUDA(cudaMemcpyAsync(out, cluster_rows_,
                                   std::int64_t{clusters} * rows_of_one * sizeof(std::int32_t),
                                   cudaMemcpyDeviceToDevice, stream_));
    device_.synchronize();
    return order;
  }

 private:
  template <class T>
  void place(T*& array, std::int64_t count, char* memory) {
    array = reinterpret_cast<T*>(memory + bytes_);
    bytes_ += (count * sizeof(T) + 255) / 256 * 256;
  }

  void lay_out(char* memory) {
    bytes_ = 0;
    const std::int64_t entries = a_.nnz, clusters = rows_ + 1;
    place(temporary_, static_cast<std::int64_t>(temporary_bytes_), memory);
    place(counts_, clusters, memory);
    place(counted_, clusters, memory);
    for (std::int32_t** array : {&cluster_, &column_, &list_column_, &lists_, &spare_})
      place(*array, entries + 1, memory);
    place(list_ptr_, a_.cols + 1, memory);
    for (std::int32_t** array : {&ptr_, &cluster_rows_, &new_rows_, &number_, &unmatched_,
                                 &partners_.longer[0], &partners_.longer[1], &rounds_[0].mate,
                                 &rounds_[0].named, &rounds_[1].mate, &rounds_[1].named})
      place(*array, clusters, memory);
    place(flags_, std::max(entries, rows_) + 1, memory);
    place(flagged_, std::max(entries, rows_) + 1, memory);
    place(partners_.of, clusters * match::kPartners, memory);
    place(partners_.count, 2, memory);
  }

  template <class... Parameters, class... Values>
  void launch(void (*kernel)(Parameters...), std::int64_t threads, Values... values) {
    kernel<<<ctas_for(threads), kThreads, 0, stream_>>>(values...);
    SPMMBENCH_CUDA_LAUNCHED();
  }

  void sort_pairs(void* temporary, std::size_t& bytes, const std::int32_t* keys,
                  std::int32_t* sorted_keys, const std::int32_t* values,
                  std::int32_t* sorted_values, int bits) {
    SPMMBENCH_CUDA(cub::DeviceRadixSort::SortPairs(temporary, bytes, keys, sorted_keys, values,
                                                   sorted_values, entries_, 0, bits, stream_));
  }
  void sort_pairs(const std::int32_t* keys, std::int32_t* sorted_keys, const std::int32_t* values,
                  std::int32_t* sorted_values, std::int64_t most) {
    std::size_t bytes = temporary_bytes_;
    sort_pairs(temporary_, bytes, keys, sorted_keys, values, sorted_values, bits_of(most));
  }

  template <class T>
  void sum_before(const T* in, T* out, std::int32_t count) {
    std::size_t bytes = temporary_bytes_;
    SPMMBENCH_CUDA(cub::DeviceScan::ExclusiveSum(temporary_, bytes, in, out, count, stream_));
  }

  std::int32_t read(const std::int32_t* number) {
    std::int32_t out = 0;
    device_.download(&out, number, sizeof out);
    return out;
  }

  // Rows that are not empty are the clusters of the first level. Returns how many.
  std::int32_t number_filled_rows(std::int32_t* order) {
    launch(mark_filled, rows_ + 1, a_, flags_);
    sum_before(flags_, flagged_, static_cast<std::int32_t>(rows_) + 1);
    launch(number_rows, rows_ + 1, a_, static_cast<const std::int32_t*>(flagged_), ptr_,
           cluster_rows_, order);
    const std::int32_t filled = read(flagged_ + rows_);
    if (filled == 0) return 0;
    launch(number_entries, (a_.nnz + kEntries - 1) / kEntries * 32,
           static_cast<const std::int32_t*>(ptr_), filled, entries_, cluster_);
    SPMMBENCH_CUDA(cudaMemcpyAsync(column_, a_.col_idx, a_.nnz * sizeof(std::int32_t),
                                   cudaMemcpyDeviceToDevice, stream_));
    return filled;
  }

  void sort_lists(std::int32_t clusters) {
    sort_pairs(column_, list_column_, cluster_, lists_, a_.cols - 1);
    launch(find_starts, a_.cols + 1, static_cast<const std::int32_t*>(list_column_), entries_,
           a_.cols, list_ptr_);
    level_ = {ptr_, column_, list_ptr_, lists_, clusters};
  }

  void find_mates(std::int32_t clusters) {
    launch(begin_rounds, clusters, clusters, rounds_[0], partners_.count);
    const int sms = device_.info().sm_count;
    for (int pass = 0; pass < match::kPasses; ++pass) {
      const std::int32_t* const mate = rounds_[0].mate;
      const auto find = [&](auto kernel, int threads, std::int64_t most_ctas, std::size_t shared) {
        kernel<<<static_cast<unsigned>(most_ctas), threads, shared, stream_>>>(level_, mate,
                                                                               partners_);
        SPMMBENCH_CUDA_LAUNCHED();
      };
      const auto ctas = [&](int clusters_of_cta) {
        return std::int64_t{clusters + clusters_of_cta - 1} / clusters_of_cta;
      };
      constexpr int kFew = kWarpThreads<kFewSlots>, kMore = kWarpThreads<kMoreSlots>;
      constexpr std::int64_t kMoreCtasPerSm = 5, kCtasPerSm = 2;  // by their tables
      find(find_partners<kFewSlots>, kFew, ctas(kFew / 32), 0);
      find(find_partners<kMoreSlots>, kMore, std::min(ctas(kMore / 32), kMoreCtasPerSm * sms), 0);
      find(find_partners_by_cta, kCtaThreads, std::min(ctas(1), kCtasPerSm * sms),
           sizeof(Table<kMostSlots>));
      Rounds rounds{{rounds_[0], rounds_[1]}, partners_.of, counts_, partners_.count, clusters};
      void* arguments[] = {&rounds};
      constexpr std::int64_t kRoundCtasPerSm = 2;  // fewer than fit: they wait for each other
      SPMMBENCH_CUDA(cudaLaunchCooperativeKernel(hold_rounds,
                                                 dim3(static_cast<unsigned>(std::min<std::int64_t>(
                                                     ctas(kThreads), kRoundCtasPerSm * sms))),
                                                 dim3(kThreads), arguments, 0, stream_));
      std::swap(rounds_[0], rounds_[1]);
    }
    mate_ = rounds_[0].mate;
  }

  void join(std::int32_t clusters, std::int32_t rows_of_one, std::int32_t* left) {
    sum_before(counts_, counted_, clusters + 1);
    launch(list_unmatched, clusters, clusters, static_cast<const std::int32_t*>(mate_),
           static_cast<const std::uint64_t*>(counted_), unmatched_);
    launch(number_clusters, clusters, Joining{mate_, counted_, unmatched_, clusters},
           static_cast<const std::int32_t*>(cluster_rows_), rows_of_one, number_, new_rows_, left);
    std::swap(cluster_rows_, new_rows_);
  }

  // The entries of the new clusters, `clusters` of them.
  void renumber(std::int32_t clusters) {
    launch(renumber_entries, entries_, entries_, static_cast<const std::int32_t*>(number_),
           static_cast<const std::int32_t*>(lists_), spare_);
    sort_pairs(spare_, cluster_, list_column_, column_, clusters);
    launch(mark_new, std::int64_t{entries_} + 1, entries_,
           static_cast<const std::int32_t*>(cluster_), static_cast<const std::int32_t*>(column_),
           clusters, flags_);
    sum_before(flags_, flagged_, entries_ + 1);
    launch(keep_new, entries_, entries_, static_cast<const std::int32_t*>(cluster_),
           static_cast<const std::int32_t*>(column_), clusters,
           static_cast<const std::int32_t*>(flagged_), spare_, list_column_, ptr_);
    std::swap(cluster_, spare_);
    std::swap(column_, list_column_);
    entries_ = read(flagged_ + entries_);
  }

  DeviceCsr a_;
  Device& device_;
  cudaStream_t stream_;
  std::int64_t rows_ = 0;
  std::int32_t entries_ = 0;  // of the level
  Buffer memory_;
  std::size_t bytes_ = 0, temporary_bytes_ = 0;
  char* temporary_ = nullptr;
  std::uint64_t *counts_ = nullptr, *counted_ = nullptr;
  std::int32_t *cluster_ = nullptr, *column_ = nullptr;     // of each entry, by cluster
  std::int32_t *list_column_ = nullptr, *lists_ = nullptr;  // the same by column
  std::int32_t *spare_ = nullptr, *list_ptr_ = nullptr, *ptr_ = nullptr;
  std::int32_t *cluster_rows_ = nullptr, *new_rows_ = nullptr, *number_ = nullptr;
  std::int32_t *unmatched_ = nullptr, *flags_ = nullptr, *flagged_ = nullptr;
  const std::int32_t* mate_ = nullptr;
  Partners partners_{};
  Round rounds_[2] = {};
  Level level_{};
};

}  // namespace

bool can_match(std::int64_t rows, std::int64_t cols, std::int64_t nnz) {
  return nnz < INT32_MAX && rows + cols <= 2 * nnz;
}

Buffer match_order(const DeviceCsr& a, Device& device) { return Matching(a, device).order(); }

}  // namespace spmmbench
