#pragma once
// The most similar clusters of each cluster: step 2 of match_order.cu.

#include <climits>
#include <cstdint>

#include "reorder/match.hpp"
#include "row_order/level.cuh"

namespace spmmbench::match {

// What a cluster reads of a column's list.
struct Stretch {
  std::int32_t begin = 0, count = 0, weight = 0;
};

// As lower_bound, three numbers at a time: a warp waits for each step.
inline __device__ std::int32_t place_in_list(const std::int32_t* list, std::int32_t length,
                                             std::int32_t own) {
  std::int32_t low = 0;
  while (length > 3) {
    const std::int32_t quarter = length / 4;
    const std::int32_t* const at = list + low + quarter;
    const int below = (at[0] < own) + (at[quarter] < own) + (at[2 * quarter] < own);
    const std::int32_t end = below == 3 ? length : (below + 1) * quarter;
    const std::int32_t begin = below == 0 ? 0 : below * quarter + 1;
    low += begin;
    length = end - begin;
  }
  return low + lower_bound(list + low, length, own);
}

inline __device__ Stretch stretch_of(const Level& all, std::int32_t own, std::int32_t column) {
  const auto [begin, length] = all.list_of[column];
  const std::int32_t before =
      length <= kMostPlaces ? 0 : place_in_list(all.lists + begin, length, own);
  const Part part = part_of_list(length, before);
  return {begin + part.begin, part.end - part.begin, part.weight};
}

// The stretch of the i-th column that a cluster looks at.
inline __device__ Stretch used_stretch(const Level& all, std::int32_t own, std::int32_t i,
                                       std::int32_t columns, std::int32_t used) {
  if (i >= used) return {};
  return stretch_of(all, own,
                    all.columns[all.columns_of[own].begin + used_column(i, columns, used)]);
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
  // The lanes of a warp call it together: those that count add the weight of a cluster. Of several
  // sweeps each takes the clusters of its own. False where the table is too full.
  __device__ bool add(bool counts, std::int32_t other, std::int32_t of_weight, unsigned sweep = 0,
                      unsigned sweeps = 1) {
    Added added{0, false};
    if (counts && static_cast<unsigned>(other) % sweeps == sweep) added = add_one(other, of_weight);
    __syncwarp();
    list(added);
    // What is left to the first table fits.
    return kSlots == kFewSlots || __all_sync(kWarp, added.slot != kNone && count <= kMost);
  }

 private:
  // The slot where the weight was added, and whether it was free; no slot where all that are looked
  // at are taken.
  struct Added {
    int slot;
    bool is_new;
  };
  __device__ Added add_one(std::int32_t other, std::int32_t of_weight) {
    // A table that is certain to have room is searched to its end.
    constexpr int kTries = kSlots == kFewSlots ? kSlots : 32;
    // 2^32 over the golden ratio: numbers that follow one another are far apart in the upper bits.
    const unsigned hash = static_cast<unsigned>(other) * 0x9E3779B9U;
    // Each number has a step of its own: in nearly full tables runs of taken slots would be long.
    const unsigned step = hash >> 4 | 1U;
    unsigned at = hash / (UINT_MAX / kSlots + 1);
    for (int tries = 0; tries < kTries; ++tries, at += step) {
      const unsigned own = at % kSlots;
      const std::int32_t there = atomicCAS(&cluster[own], kNone, other);
      if (there != kNone && there != other) continue;
      atomicAdd(&weight[own], of_weight);
      return {static_cast<int>(own), there == kNone};
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

// Weights of all clusters of a level that has few. With many, looking at each takes longer than
// what the other table loses by collisions.
struct Weights {
  static constexpr std::int32_t kMost = 8192;
  unsigned of_two[kMost / 2];

  static_assert(kWhole * kMostColumns <= 0xFFFF, "two weights share a word");
  __device__ void clear(std::int32_t clusters, int thread, int threads) {
    for (int at = thread; at < (clusters + 1) / 2; at += threads) of_two[at] = 0;
  }
  __device__ void add(std::int32_t cluster, std::int32_t weight) {
    atomicAdd(&of_two[cluster / 2], static_cast<unsigned>(weight) << (cluster % 2 * 16));
  }
  __device__ std::int32_t operator[](std::int32_t cluster) const {
    return static_cast<std::int32_t>(of_two[cluster / 2] >> (cluster % 2 * 16) & 0xFFFFU);
  }
};

inline __device__ Partner none() { return {0, INT_MAX}; }

// The best of the warp's partners.
inline __device__ Partner best_of_warp(const Partner& own) {
  const auto high = static_cast<unsigned>(own.rank >> 32), low = static_cast<unsigned>(own.rank);
  const unsigned most_high = __reduce_max_sync(kWarp, high);
  const unsigned most_low = __reduce_max_sync(kWarp, high == most_high ? low : 0U);
  const bool is_best = high == most_high && low == most_low;
  const int cluster = __reduce_min_sync(kWarp, is_best ? own.cluster : INT_MAX);
  return {std::uint64_t{most_high} << 32 | most_low, cluster};
}

inline __device__ Partner from_lane(const Partner& own, int lane) {
  return {__shfl_sync(kWarp, own.rank, lane), __shfl_sync(kWarp, own.cluster, lane)};
}

// The best partners that a warp has seen, best first: lane i has the i-th.
struct Best {
  Partner own = none();  // of lanes below kPartners

  // So many partners from each lane, or none().
  template <int kCount>
  __device__ void add(const Partner (&given)[kCount]) {
    const int lane = threadIdx.x % 32;
    const Partner last = from_lane(own, kPartners - 1);
    Partner mine[kCount + 1];  // best first
    mine[0] = own;
    bool changes = false;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      changes |= given[i].before(last);
      Partner next = given[i];
#pragma unroll
      for (int place = 0; place <= i; ++place)
        if (next.before(mine[place])) swap(next, mine[place]);
      mine[i + 1] = next;
    }
    if (!__any_sync(kWarp, changes)) return;
    Partner kept = none();
    for (int place = 0; place < kPartners; ++place) {
      const Partner best = best_of_warp(mine[0]);
      if (best.rank == 0) break;
      if (lane == place) kept = best;
      if (mine[0].cluster != best.cluster) continue;
#pragma unroll
      for (int i = 0; i < kCount; ++i) mine[i] = mine[i + 1];
      mine[kCount] = none();
    }
    own = kept;
  }

 private:
  static __device__ void swap(Partner& x, Partner& y) {
    const Partner kept = x;
    x = y;
    y = kept;
  }
};

struct Partners {
  std::int32_t* of;         // [clusters][kPartners], kNone after the last
  std::int32_t* longer[2];  // clusters that are left to a kernel with larger tables
  std::int32_t* count;      // how many of each
  // Of every step-th cluster alone, where a sample is asked for.
  std::int32_t step = 1;
  unsigned long long* sample = nullptr;  // Sample::shared and columns, else null
};

// Whether a cluster has no partner. `states`: null where none has one yet.
inline __device__ bool is_free(const State* states, std::int32_t cluster) {
  return states == nullptr || states[cluster].mate == kNone;
}

// One cluster and what its threads look at.
struct Search {
  const Level& all;
  const State* states;  // as for is_free
  std::int32_t own, columns, used;

  __device__ Search(const Level& level, const State* of_clusters, std::int32_t cluster)
      : all(level),
        states(of_clusters),
        own(cluster),
        columns(level.length(cluster)),
        used(used_columns(columns)) {}

  static constexpr int kAhead = 4;  // places of a lane that are read at a time

  // What the cluster reads of its i-th column that is looked at.
  __device__ Stretch stretch(std::int32_t i) const {
    return used_stretch(all, own, i, columns, used);
  }

  // How many places that is.
  __device__ std::int32_t places(std::int32_t i) const {
    if (i >= used) return 0;
    const std::int32_t column =
        all.columns[all.columns_of[own].begin + used_column(i, columns, used)];
    return min(all.list_of[column].length, kMostPlaces);
  }

  // Goes through the clusters that share some of the columns: the warp takes a column for each
  // lane, place by place of their stretches. add(counts, cluster, weight) is called by all lanes
  // together, and ends it where it returns false.
  template <class Add>
  __device__ bool read(const Stretch& mine, Add add) const {
    const int lane = threadIdx.x % 32;
    std::int32_t end = mine.count;  // of this lane's places among those of the warp
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const std::int32_t before = __shfl_up_sync(kWarp, end, distance);
      if (lane >= distance) end += before;
    }
    const std::int32_t places = __shfl_sync(kWarp, end, 31);
    const std::int32_t offset = mine.begin - (end - mine.count);  // of its places in the lists
    for (std::int32_t from = 0; from < places; from += kAhead * 32) {
      // Several places of a lane are read at a time: few warps have much to read, and wait for it.
      std::int32_t others[kAhead], weights[kAhead] = {};
      bool counts[kAhead];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        others[i] = own;
        if (from + i * 32 >= places) continue;
        const std::int32_t place = from + i * 32 + lane;
        int source = 0;  // the lane whose stretch has the place
#pragma unroll
        for (int step = 16; step > 0; step /= 2)
          if (__shfl_sync(kWarp, end, source + step - 1) <= place) source += step;
        const std::int32_t begin = __shfl_sync(kWarp, offset, source);
        weights[i] = __shfl_sync(kWarp, mine.weight, source);
        if (place < places) others[i] = all.lists[begin + place];
      }
#pragma unroll
      for (int i = 0; i < kAhead; ++i) counts[i] = others[i] != own && is_free(states, others[i]);
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        if (from + i * 32 >= places) break;
        if (!add(counts[i], others[i], weights[i])) return false;
      }
    }
    return true;
  }

  // The best partners where all that the cluster reads is a place for each lane: no table is
  // needed.
  __device__ Best of_few_places() const {
    const int lane = static_cast<int>(threadIdx.x % 32);
    Partner partners[1] = {none()};
    read(stretch(lane), [&](bool counts, std::int32_t other, std::int32_t weight) {
      const unsigned same = __match_any_sync(kWarp, counts ? other : -1 - lane);
      const int whole = __popc(__ballot_sync(kWarp, weight == kWhole) & same);
      if (counts && lane == __ffs(same) - 1)
        partners[0] = partner(other, whole * kWhole + (__popc(same) - whole) * kHalf);
      return true;
    });
    Best best;
    best.add(partners);
    return best;
  }

  // Adds partner(0) to partner(count - 1) to the best of the warps that call it, one of `warps`.
  template <class PartnerAt>
  __device__ void rank(std::int32_t count, PartnerAt partner, Best& best, int warp,
                       int warps) const {
    // Several are read at a time: one after another they would be most of a cluster's time.
    constexpr int kAtOnce = 4;
    std::int32_t first = warp * 32;
    for (; first + warps * 32 < count; first += kAtOnce * warps * 32)
      rank_some<kAtOnce>(first, count, partner, best, warps);
    if (first < count) rank_some<1>(first, count, partner, best, warps);
  }
  template <int kCount, class PartnerAt>
  __device__ void rank_some(std::int32_t first, std::int32_t count, PartnerAt partner, Best& best,
                            int warps) const {
    Partner partners[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const std::int32_t at = first + i * warps * 32 + static_cast<std::int32_t>(threadIdx.x % 32);
      partners[i] = at < count ? partner(at) : none();
    }
    best.add(partners);
  }
  template <int kSlots>
  __device__ void rank(const Table<kSlots>& table, Best& best, int warp, int warps) const {
    rank(
        table.count,
        [&](std::int32_t i) {
          const int slot = table.slot[i];
          return partner(table.cluster[slot], table.weight[slot]);
        },
        best, warp, warps);
  }
  __device__ Partner partner(std::int32_t other, std::int32_t weight) const {
    return rank_partner(own, other, weight, columns, used, all.length(other));
  }

  __device__ void keep(const Partners& out, const Best& best) const {
    const int lane = threadIdx.x % 32;
    if (lane < kPartners)
      out.of[std::int64_t{own} * kPartners + lane] = best.own.rank == 0 ? kNone : best.own.cluster;
    if (out.sample == nullptr || lane != 0) return;
    atomicAdd(out.sample, shared_with(best.own.rank, columns));
    atomicAdd(out.sample + 1, static_cast<unsigned long long>(columns));
  }
};

template <int kSlots>
constexpr int kWarpThreads = kSlots == kFewSlots ? 256 : 128;
// Clusters that read more places of lists are left to a CTA: all would wait for the warps that read
// most (email-Enron: 140 us a pass with 4096).
constexpr std::int32_t kMostWarpPlaces = 1024;
// So few are left to CTAs, whatever they read: waiting for single warps takes longer (cora: the
// whole order in 0.75 x).
constexpr std::int32_t kFewClusters = 512;

// A warp for each cluster. What does not fit in its table is left to the next kernel.
template <int kSlots>
__global__ void __launch_bounds__(kWarpThreads<kSlots>)
    find_partners(const __grid_constant__ Level all, const State* states, Partners out) {
  constexpr bool kIsFirst = kSlots == kFewSlots;
  constexpr int kWarps = kWarpThreads<kSlots> / 32;
  __shared__ Table<kSlots> tables[kWarps];
  Table<kSlots>& table = tables[threadIdx.x / 32];
  const int lane = threadIdx.x % 32;
  const std::int32_t end = kIsFirst ? (all.clusters + out.step - 1) / out.step : out.count[0];
  const auto first = static_cast<std::int32_t>(thread_index() / 32);
  if (first >= end) return;
  bool begun = false;
  const std::int32_t most_places = kIsFirst              ? Table<kSlots>::kMost
                                   : end <= kFewClusters ? 0
                                                         : kMostWarpPlaces;
  const auto stride = static_cast<std::int32_t>(gridDim.x) * kWarps;
  for (std::int32_t at = first; at < end; at += stride) {
    const std::int32_t own = kIsFirst ? at * out.step : out.longer[0][at];
    if (!is_free(states, own)) continue;
    const Search search(all, states, own);
    std::int32_t places = search.used;
    if (places <= most_places) {
      places = 0;
      for (std::int32_t i = lane; i < search.used; i += 32) places += search.places(i);
      places = __reduce_add_sync(kWarp, places);
    }
    if (kIsFirst && places <= 32 && search.used <= 32) {
      search.keep(out, search.of_few_places());
      continue;
    }
    if (!begun) table.begin(lane, 32);
    begun = true;
    __syncwarp();
    bool fits = places <= most_places;
    for (std::int32_t i = lane; fits && i - lane < search.used; i += 32) {
      fits =
          search.read(search.stretch(i), [&](bool counts, std::int32_t other, std::int32_t weight) {
            return table.add(counts, other, weight);
          });
      __syncwarp();
    }
    if (fits) {
      Best best;
      search.rank(table, best, 0, 1);
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

// Of two kinds of tables, by how many clusters the level has.
union CtaTables {
  Table<kMostSlots> few;
  Weights of_all;
};

// A CTA for each of the others. Where its table holds neither all clusters of the level nor all
// that are met, these are counted in twice as many sweeps, each of a part of them.
__global__ void __launch_bounds__(kCtaThreads)
    find_partners_by_cta(const __grid_constant__ Level all, const State* states, Partners out) {
  constexpr int kWarps = kCtaThreads / 32;
  extern __shared__ __align__(16) unsigned char memory[];
  auto& tables = *reinterpret_cast<CtaTables*>(memory);
  __shared__ Partner best_of[kWarps][kPartners];
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const std::int32_t count = out.count[1];
  if (static_cast<std::int32_t>(blockIdx.x) >= count) return;
  const bool has_all = all.clusters <= Weights::kMost;
  if (!has_all) tables.few.begin(thread, kCtaThreads);
  const auto clear = [&] {
    __syncthreads();
    tables.few.clear(thread, kCtaThreads);
    __syncthreads();
    if (thread == 0) tables.few.count = 0;
    __syncthreads();
  };
  for (auto at = static_cast<std::int32_t>(blockIdx.x); at < count;
       at += static_cast<std::int32_t>(gridDim.x)) {
    const Search search(all, states, out.longer[1][at]);
    // Columns of a warp at a time. All warps take as many turns.
    const std::int32_t part = min(32, (search.used + kWarps - 1) / kWarps);
    const auto stretch = [&](std::int32_t first) {
      return lane < part ? search.stretch(first + warp * part + lane) : Stretch{};
    };
    Best best;
    if (has_all) {
      Weights& weights = tables.of_all;
      weights.clear(all.clusters, thread, kCtaThreads);
      __syncthreads();
      for (std::int32_t first = 0; first < search.used; first += kWarps * part)
        search.read(stretch(first), [&](bool counts, std::int32_t other, std::int32_t weight) {
          if (counts) weights.add(other, weight);
          return true;
        });
      __syncthreads();
      search.rank(
          all.clusters,
          [&](std::int32_t other) {
            const std::int32_t weight = weights[other];
            return weight == 0 ? none() : search.partner(other, weight);
          },
          best, warp, kWarps);
    }
    bool done = has_all;
    for (unsigned sweeps = 1; !done; sweeps *= 2) {
      best = {};
      done = true;
      for (unsigned sweep = 0; done && sweep < sweeps; ++sweep) {
        clear();
        for (std::int32_t first = 0; done && first < search.used; first += kWarps * part) {
          const bool fits = search.read(
              stretch(first), [&](bool counts, std::int32_t other, std::int32_t weight) {
                return tables.few.add(counts, other, weight, sweep, sweeps);
              });
          done = __syncthreads_and(fits);
        }
        if (done) search.rank(tables.few, best, warp, kWarps);
      }
    }
    if (!has_all) clear();
    if (lane < kPartners) best_of[warp][lane] = best.own;
    __syncthreads();
    if (warp == 0) {
      constexpr int kOfLane = kWarps * kPartners / 32;
      Partner others[kOfLane];
#pragma unroll
      for (int i = 0; i < kOfLane; ++i) others[i] = (&best_of[0][0])[i * 32 + lane];
      best.own = none();  // they are among these
      best.add(others);
      search.keep(out, best);
    }
  }
}

}  // namespace spmmbench::match
