#pragma once
// The most similar clusters of each cluster: step 2 of match_order.cu.

#include <bit>
#include <cstdint>

#include "reorder/match.hpp"
#include "row_order/level.cuh"
#include "row_order/table.cuh"

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

inline __device__ Stretch stretch_of(const Level& all, std::int32_t own, std::int32_t column,
                                     std::int32_t most) {
  const auto [begin, length] = all.list_of[column];
  const std::int32_t before = length <= most ? 0 : place_in_list(all.lists + begin, length, own);
  const Part part = part_of_list(length, before, most);
  return {begin + part.begin, part.end - part.begin, part.weight};
}

// The stretch of the i-th column that a cluster looks at.
inline __device__ Stretch used_stretch(const Level& all, std::int32_t own, std::int32_t i,
                                       std::int32_t columns, std::int32_t used, std::int32_t most) {
  if (i >= used) return {};
  return stretch_of(all, own,
                    all.columns[all.columns_of[own].begin + used_column(i, columns, used)], most);
}

// The best rank that the warp has.
inline __device__ std::uint64_t best_of_warp(std::uint64_t own) {
  const auto high = static_cast<unsigned>(own >> 32), low = static_cast<unsigned>(own);
  const unsigned most_high = __reduce_max_sync(kWarp, high);
  const unsigned most_low = __reduce_max_sync(kWarp, high == most_high ? low : 0U);
  return std::uint64_t{most_high} << 32 | most_low;
}

// The best ranks that a warp has seen, best first: lane i has the i-th, or 0.
struct Best {
  std::uint64_t own = 0;  // of lanes below kPartners

  // So many ranks of each lane, or 0. No rank is given twice.
  template <int kCount>
  __device__ void add(const std::uint64_t (&given)[kCount]) {
    const int lane = threadIdx.x % 32;
    const std::uint64_t last = __shfl_sync(kWarp, own, kPartners - 1);
    std::uint64_t mine[kCount + 1];  // best first
    mine[0] = own;
    bool changes = false;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      changes |= given[i] > last;
      std::uint64_t next = given[i];
#pragma unroll
      for (int place = 0; place <= i; ++place) {
        const std::uint64_t there = mine[place];
        mine[place] = max(there, next);
        next = min(there, next);
      }
      mine[i + 1] = next;
    }
    if (!__any_sync(kWarp, changes)) return;
    std::uint64_t kept = 0;
    for (int place = 0; place < kPartners; ++place) {
      const std::uint64_t best = best_of_warp(mine[0]);
      if (best == 0) break;
      if (lane == place) kept = best;
      if (mine[0] != best) continue;
#pragma unroll
      for (int i = 0; i < kCount; ++i) mine[i] = mine[i + 1];
      mine[kCount] = 0;
    }
    own = kept;
  }
};

struct Partners {
  std::int32_t* of;         // [clusters][kPartners], kNone after the last
  std::int32_t* longer[2];  // clusters that are left to a kernel with larger tables
  std::int32_t* count;      // how many of each
  State* states;            // each names its best partner in its own
  // Of every step-th cluster alone, where a sample is asked for.
  std::int32_t step = 1;
  unsigned long long* sample = nullptr;  // the members of Sample, else null
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
  std::int32_t most;  // places of a list

  __device__ Search(const Level& level, const State* of_clusters, std::int32_t cluster)
      : all(level),
        states(of_clusters),
        own(cluster),
        columns(level.length(cluster)),
        used(used_columns(columns)),
        most(places_in(level.pass, columns)) {}

  static constexpr int kAhead = 4;  // places of a lane that are read at a time
  static constexpr std::int32_t kHalfWarp = 16;
  static_assert(kFewPlaces % kHalfWarp == 0 && kPlacesOfFew % kHalfWarp == 0 &&
                kMostPlaces % kHalfWarp == 0);

  // What the cluster reads of its i-th column that is looked at.
  __device__ Stretch stretch(std::int32_t i) const {
    return used_stretch(all, own, i, columns, used, most);
  }

  // How many places that is.
  __device__ std::int32_t places(std::int32_t i) const {
    if (i >= used) return 0;
    const std::int32_t column =
        all.columns[all.columns_of[own].begin + used_column(i, columns, used)];
    return min(all.list_of[column].length, most);
  }

  // Goes through the clusters that share some of the columns: the warp takes a column for each
  // lane, and its lanes the places of one stretch where these are long, or else places of several,
  // one after another. add(counts, cluster, weight) is called by all lanes together. False, and no
  // further, where it is false for one of them.
  template <class Add>
  __device__ bool read(Stretch mine, Add add) const {
    const int lane = threadIdx.x % 32;
    std::int32_t end = mine.count;  // of this lane's places among those of the warp
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const std::int32_t before = __shfl_up_sync(kWarp, end, distance);
      if (lane >= distance) end += before;
    }
    const std::int32_t places = __shfl_sync(kWarp, end, 31);
    const int stretches = 32 - __clz(__ballot_sync(kWarp, mine.count > 0));
    // Half a warp reads kHalfWarp places of a stretch.
    const std::int32_t halves = most / kHalfWarp;
    const bool are_long = places > 32 && 3 * places >= 2 * stretches * most;
    const std::int32_t turns = are_long ? (stretches * halves + 1) / 2 : (places + 31) / 32;
    const std::int32_t of_half = (1 << 16) / halves + 1;  // so that a shift divides by `halves`
    // Of its first place, or where place 0 of all would be.
    const std::int32_t offset = are_long ? mine.begin : mine.begin - (end - mine.count);
    const std::int32_t last = are_long ? mine.count : end;
    for (std::int32_t turn = 0; turn < turns; turn += kAhead) {
      // Several places of a lane are read at a time: few warps have much to read, and wait for it.
      std::int32_t others[kAhead], weights[kAhead] = {};
      bool counts[kAhead];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        others[i] = own;
        if (turn + i >= turns) continue;
        std::int32_t place = (turn + i) * 32 + lane;
        int source = 0;  // the lane whose stretch has the place
        if (are_long) {
          const std::int32_t half = place / kHalfWarp;
          source = half * of_half >> 16;
          place = (half - source * halves) * kHalfWarp + lane % kHalfWarp;
        } else {
#pragma unroll
          for (int step = 16; step > 0; step /= 2)
            if (__shfl_sync(kWarp, end, source + step - 1) <= place) source += step;
        }
        const std::int32_t begin = __shfl_sync(kWarp, offset, source);
        const bool is_there = place < __shfl_sync(kWarp, last, source) && source < 32;
        weights[i] = __shfl_sync(kWarp, mine.weight, source);
        if (is_there) others[i] = all.lists[begin + place];
      }
#pragma unroll
      for (int i = 0; i < kAhead; ++i) counts[i] = others[i] != own && is_free(states, others[i]);
#pragma unroll
      for (int i = 0; i < kAhead; ++i)
        if (turn + i < turns && !__all_sync(kWarp, add(counts[i], others[i], weights[i])))
          return false;
    }
    return true;
  }

  // The best partners where all that the cluster reads is a place for each lane: no table is
  // needed.
  __device__ Best of_few_places(Stretch mine) const {
    const int lane = static_cast<int>(threadIdx.x % 32);
    std::uint64_t ranks[1] = {0};
    read(mine, [&](bool counts, std::int32_t other, std::int32_t weight) {
      const unsigned same = __match_any_sync(kWarp, counts ? other : -1 - lane);
      const int whole = __popc(__ballot_sync(kWarp, weight == kWhole) & same);
      if (counts && lane == __ffs(same) - 1)
        ranks[0] = rank(other, whole * kWhole + (__popc(same) - whole) * kHalf);
      return true;
    });
    Best best;
    best.add(ranks);
    return best;
  }

  // Adds `count` words of a table to the best of the warp.
  template <class Word>
  __device__ void rank_words(const Word* words, std::int32_t count, Best& best) const {
    // Several are read at a time: one after another they would be most of a cluster's time.
    constexpr int kAtOnce = 4;
    std::int32_t first = 0;
    for (; first + 32 < count; first += kAtOnce * 32)
      rank_some<kAtOnce>(words + first, count - first, best);
    if (first < count) rank_some<1>(words + first, count - first, best);
  }
  template <int kCount, class Word>
  __device__ void rank_some(const Word* words, std::int32_t count, Best& best) const {
    std::uint64_t ranks[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const std::int32_t at = i * 32 + static_cast<std::int32_t>(threadIdx.x % 32);
      ranks[i] =
          at < count ? rank(Table<Word>::cluster(words[at]), Table<Word>::weight(words[at])) : 0;
    }
    best.add(ranks);
  }
  __device__ std::uint64_t rank(std::int32_t other, std::int32_t weight) const {
    return rank_partner(own, other, weight, columns, used, all.length(other));
  }

  __device__ void keep(const Partners& out, const Best& best) const {
    const int lane = threadIdx.x % 32;
    const std::int32_t partner = best.own == 0 ? kNone : ranked_partner(own, best.own);
    if (lane < kPartners) out.of[std::int64_t{own} * kPartners + lane] = partner;
    if (lane != 0) return;
    out.states[own].named = partner;
    if (out.sample == nullptr) return;
    atomicAdd(out.sample, shared_with(best.own, columns));
    atomicAdd(out.sample + 1, static_cast<unsigned long long>(columns));
  }
};

// Clusters that read more places of lists are left to CTAs, and of these those that read the most
// to large ones: all would wait for the warps that read most. Where there are too few clusters for
// all warps of the GPU, more are left to CTAs.
constexpr std::int32_t kMostWarpPlaces = 1024, kFewWarpPlaces = 256, kMostCtaPlaces = 4096;
constexpr std::int32_t kFewClusters = 4096;
SPMMBENCH_HOST_DEVICE constexpr std::int32_t most_warp_places(std::int32_t clusters) {
  return clusters <= kFewClusters ? kFewWarpPlaces : kMostWarpPlaces;
}

constexpr int kWarpThreads = 128, kWarpBits = 10;
static_assert(kMostWarpPlaces <= 1 << kWarpBits, "the table of a warp has all that it meets");

// A warp for each cluster.
template <class Word>
__global__ void __launch_bounds__(kWarpThreads)
    find_partners(const __grid_constant__ Level all, const State* states,
                  const __grid_constant__ Partners out) {
  __shared__ __align__(16) Word words[kWarpThreads / 32][1 << kWarpBits];
  const int lane = threadIdx.x % 32;
  const std::int64_t own = thread_index() / 32 * out.step;
  if (own >= all.clusters || !is_free(states, static_cast<std::int32_t>(own))) return;
  const Search search(all, states, static_cast<std::int32_t>(own));
  const Stretch first = search.stretch(lane);
  std::int32_t places = __reduce_add_sync(kWarp, first.count);
  for (std::int32_t i = 32; i < search.used && places <= kMostCtaPlaces; i += 32)
    places += __reduce_add_sync(kWarp, search.places(i + lane));
  if (places <= 32 && search.used <= 32) {
    search.keep(out, search.of_few_places(first));
    return;
  }
  if (places > most_warp_places(all.clusters)) {
    const bool is_most = places > kMostCtaPlaces;
    std::int32_t* const queue = is_most ? out.longer[1] : out.longer[0];
    if (lane == 0) queue[atomicAdd(out.count + (is_most ? 1 : 0), 1)] = search.own;
    return;
  }
  const Table<Word> table{words[threadIdx.x / 32], min(kWarpBits, Table<Word>::bits_for(places))};
  const int all_words = 1 << table.bits;
  table.clear(lane, 32);
  __syncwarp();
  Stretch mine = first;
  for (std::int32_t i = 32;; i += 32) {
    search.read(mine, [&](bool counts, std::int32_t other, std::int32_t weight) {
      return !counts || table.add(other, weight, all_words);
    });
    if (i >= search.used) break;
    mine = search.stretch(i + lane);
  }
  __syncwarp();
  Best best;
  search.rank_words(table.words, table.compact(0, all_words), best);
  search.keep(out, best);
}

// Threads of a CTA, bytes of its table, and how often it looks for a free word.
struct SmallCta {
  static constexpr int kThreads = 128, kBytes = 16 << 10, kTries = 32, kQueue = 0;
};
struct LargeCta {
  static constexpr int kThreads = 512, kBytes = 64 << 10, kTries = 64, kQueue = 1;
};

// A CTA for each of the others. Where a small CTA's table does not hold all clusters that are met,
// a large one takes the cluster; where its own does not, they are counted in twice as many sweeps,
// each of a part of them.
template <class Cta, class Word>
__global__ void __launch_bounds__(Cta::kThreads)
    find_partners_by_cta(const __grid_constant__ Level all, const State* states,
                         const __grid_constant__ Partners out) {
  constexpr int kWarps = Cta::kThreads / 32;
  constexpr int kBits = std::bit_width(Cta::kBytes / sizeof(Word)) - 1;
  constexpr int kLeastBits = std::bit_width(static_cast<unsigned>(Cta::kThreads)) - 1;
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ std::uint64_t best_of[kWarps][kPartners];
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const std::int32_t count = out.count[Cta::kQueue];
  for (auto at = static_cast<std::int32_t>(blockIdx.x); at < count;
       at += static_cast<std::int32_t>(gridDim.x)) {
    const Search search(all, states, out.longer[Cta::kQueue][at]);
    const Table<Word> table{
        reinterpret_cast<Word*>(memory),
        min(kBits, max(kLeastBits, Table<Word>::bits_for(search.used * search.most)))};
    const int words_of_warp = (1 << table.bits) / kWarps;
    // Columns of a warp at a time.
    const std::int32_t part = min(32, (search.used + kWarps - 1) / kWarps);
    Best best;
    bool done = false;
    for (unsigned sweeps = 1; !done; sweeps *= 2) {
      best = {};
      done = true;
      for (unsigned sweep = 0; done && sweep < sweeps; ++sweep) {
        table.clear(thread, Cta::kThreads);
        __syncthreads();
        bool fits = true;
        for (std::int32_t first = warp * part; fits && first < search.used; first += kWarps * part)
          fits = search.read(lane < part ? search.stretch(first + lane) : Stretch{},
                             [&](bool counts, std::int32_t other, std::int32_t weight) {
                               const bool is_own =
                                   (static_cast<unsigned>(other) & (sweeps - 1)) == sweep;
                               return !counts || !is_own || table.add(other, weight, Cta::kTries);
                             });
        done = __syncthreads_and(fits);
        if (!done) break;
        const int first = warp * words_of_warp;
        search.rank_words(table.words + first, table.compact(first, words_of_warp), best);
        __syncthreads();
      }
      if (Cta::kQueue == 0) break;
    }
    if (!done) {
      if (thread == 0) out.longer[1][atomicAdd(&out.count[1], 1)] = search.own;
      continue;
    }
    if (lane < kPartners) best_of[warp][lane] = best.own;
    __syncthreads();
    if (warp == 0) {
      constexpr int kOfLane = kWarps * kPartners / 32;
      std::uint64_t others[kOfLane];
#pragma unroll
      for (int i = 0; i < kOfLane; ++i) others[i] = (&best_of[0][0])[i * 32 + lane];
      best.own = 0;  // they are among these
      best.add(others);
      search.keep(out, best);
    }
  }
}

}  // namespace spmmbench::match
