#pragma once
// The most similar rows of each row: step 2 of match_order.cu.

#include <bit>
#include <cstdint>

#include "ptx/griddepcontrol.cuh"
#include "reorder/match.hpp"
#include "row_order/level.cuh"
#include "row_order/suits.cuh"
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
  std::uint64_t own = 0;  // of lanes below kNear

  // The best among one rank of each lane, or 0.
  static __device__ Best of(std::uint64_t given) {
    const int lane = threadIdx.x % 32;
    // Sorted by Batcher's bitonic network.
#pragma unroll
    for (int sorted = 2; sorted <= 32; sorted *= 2) {
#pragma unroll
      for (int distance = sorted / 2; distance > 0; distance /= 2) {
        const std::uint64_t other = __shfl_xor_sync(kWarp, given, distance);
        const bool takes_larger = ((lane & distance) == 0) == ((lane & sorted) == 0);
        if ((other > given) == takes_larger) given = other;
      }
    }
    return {lane < kNear ? given : 0};
  }

  // This many ranks of each lane, or 0. No rank is given twice.
  template <int kCount>
  __device__ void add(const std::uint64_t (&given)[kCount]) {
    std::uint64_t mine[kCount];  // best first
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      std::uint64_t next = given[i];
#pragma unroll
      for (int place = 0; place < i; ++place) {
        const std::uint64_t there = mine[place];
        mine[place] = max(there, next);
        next = min(there, next);
      }
      mine[i] = next;
    }
    // One after another, the best first, as long as they are better than the last.
    for (;;) {
      const std::uint64_t last = __shfl_sync(kWarp, own, kNear - 1);
      if (!__any_sync(kWarp, mine[0] > last)) return;
      const std::uint64_t best = best_of_warp(mine[0]);
      insert(best);
      if (mine[0] != best) continue;
#pragma unroll
      for (int i = 0; i + 1 < kCount; ++i) mine[i] = mine[i + 1];
      mine[kCount - 1] = 0;
    }
  }

 private:
  __device__ void insert(std::uint64_t rank) {
    const int lane = threadIdx.x % 32;
    const std::uint64_t before = __shfl_up_sync(kWarp, own, 1);
    if (lane < kNear && own < rank) own = lane == 0 || before > rank ? rank : before;
  }
};

struct Partners {
  Suits suits;
  std::int32_t* longer[2];  // clusters that are left to a kernel with larger tables
  std::int32_t* count;      // how many of each, and how many of them CTAs have begun
  // For a sample only every step-th cluster is looked at: `suits` has the ranks of these alone.
  std::int32_t step = 1;
  unsigned long long* sample = nullptr;  // the members of Sample, else null
  const std::int32_t* stops = nullptr;   // what a sample says meanwhile; null: none is asked for

  // Whether nothing that is found counts.
  __device__ bool is_stopped() const {
    return stops != nullptr && *static_cast<const volatile std::int32_t*>(stops) != 0;
  }
};

// One cluster and what its threads look at.
struct Search {
  const Level& all;
  std::int32_t own, columns;
  std::int32_t most;  // places of a list
  std::int32_t used;  // columns

  __device__ Search(const Level& level, std::int32_t cluster)
      : all(level),
        own(cluster),
        columns(level.length(cluster)),
        most(places_for(columns)),
        used(used_columns(columns, most)) {}

  static constexpr int kAhead = 4;  // places of a lane that are read at a time
  static constexpr std::int32_t kHalfWarp = 16;
  static_assert(kFewPlaces % kHalfWarp == 0 && kMostPlaces % kHalfWarp == 0);

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
  // one after another. add(counts, clusters, weights) is called by all lanes together, for kAhead
  // places of each.
  template <class Add>
  __device__ void read(Stretch mine, Add add) const {
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
    // Where its first place lies, or where place 0 of all would lie.
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
      for (int i = 0; i < kAhead; ++i) counts[i] = others[i] != own;
      add(counts, others, weights);
    }
  }

  // The best partners where all that the cluster reads is a place for each lane: no table is
  // needed.
  __device__ Best of_few_places(Stretch mine) const {
    const int lane = static_cast<int>(threadIdx.x % 32);
    std::uint64_t own_rank = 0;
    read(mine, [&](const auto& counts, const auto& others, const auto& weights) {
      const unsigned same = __match_any_sync(kWarp, counts[0] ? others[0] : -1 - lane);
      const int whole = __popc(__ballot_sync(kWarp, weights[0] == kWhole) & same);
      if (counts[0] && lane == __ffs(same) - 1)
        own_rank = rank(others[0], whole * kWhole + (__popc(same) - whole) * kHalf);
    });
    return Best::of(own_rank);
  }

  // The best of `count` words of a table.
  template <class Word>
  __device__ Best best_of_words(const Word* words, std::int32_t count) const {
    if (count <= 32) return Best::of(rank_of(words, static_cast<int>(threadIdx.x % 32), count));
    Best best;
    // Several are read at a time: one after another they would be most of a cluster's time.
    constexpr int kAtOnce = 4;
    std::int32_t first = 0;
    for (; first + 32 < count; first += kAtOnce * 32)
      rank_some<kAtOnce>(words + first, count - first, best);
    if (first < count) rank_some<1>(words + first, count - first, best);
    return best;
  }
  template <class Word>
  __device__ std::uint64_t rank_of(const Word* words, std::int32_t at, std::int32_t count) const {
    return at < count ? rank(Table<Word>::cluster(words[at]), Table<Word>::weight(words[at])) : 0;
  }
  template <int kCount, class Word>
  __device__ void rank_some(const Word* words, std::int32_t count, Best& best) const {
    std::uint64_t ranks[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      ranks[i] = rank_of(words, i * 32 + static_cast<int>(threadIdx.x % 32), count);
    best.add(ranks);
  }
  __device__ std::uint64_t rank(std::int32_t other, std::int32_t weight) const {
    return rank_partner(own, other, weight, columns, used, all.length(other));
  }

  __device__ void keep(const Partners& out, const Best& best) const {
    const int lane = threadIdx.x % 32;
    if (out.sample == nullptr) {
      out.suits.ask(own, lane < near_of(columns) ? best.own : 0);
      return;
    }
    if (lane < kNear) out.suits.ranks[std::int64_t{own / out.step} * kNear + lane] = best.own;
    if (lane != 0) return;
    atomicAdd(out.sample, shared_with(best.own, columns));
    atomicAdd(out.sample + 1, static_cast<unsigned long long>(columns));
  }
};

// Clusters that read more places of lists are left to CTAs: all would wait for the warps that read
// most. Where there are too few clusters for all warps of the GPU, more are left to CTAs.
constexpr std::int32_t kMostWarpPlaces = 384, kFewWarpPlaces = 256;
constexpr std::int32_t kFewClusters = 4096;
SPMMBENCH_HOST_DEVICE constexpr std::int32_t most_warp_places(std::int32_t clusters) {
  return clusters <= kFewClusters ? kFewWarpPlaces : kMostWarpPlaces;
}
// CTAs take those that read more than this first, so that none begins with one of them at the end.
constexpr std::int32_t kManyPlaces = 512;

constexpr int kWarpThreads = 128, kWarpBits = 9;
static_assert(kMostWarpPlaces <= 1 << kWarpBits, "the table of a warp has all that it meets");

// A warp for each cluster.
template <class Word>
__global__ void __launch_bounds__(kWarpThreads)
    find_partners(const __grid_constant__ Level all, const __grid_constant__ Partners out) {
  __shared__ __align__(16) Word words[kWarpThreads / 32][1 << kWarpBits];
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const int lane = threadIdx.x % 32;
  const std::int64_t own = thread_index() / 32 * out.step;
  if (own >= all.clusters || out.is_stopped()) return;
  const Search search(all, static_cast<std::int32_t>(own));
  std::int32_t places = 0;
  for (std::int32_t i = 0; i < search.used && places <= kManyPlaces; i += 32)
    places += __reduce_add_sync(kWarp, search.places(i + lane));
  if (places > most_warp_places(all.clusters)) {
    const bool are_many = places > kManyPlaces;
    std::int32_t* const queue = are_many ? out.longer[1] : out.longer[0];
    if (lane == 0) queue[atomicAdd(out.count + (are_many ? 1 : 0), 1)] = search.own;
    return;
  }
  const Stretch first = search.stretch(lane);
  if (places <= 32 && search.used <= 32) {
    search.keep(out, search.of_few_places(first));
    return;
  }
  const Table<Word> table{words[threadIdx.x / 32], Table<Word>::bits_for(places, all.clusters)};
  table.clear(lane, 32);
  __syncwarp();
  Stretch mine = first;
  for (std::int32_t i = 32;; i += 32) {
    search.read(mine, [&](const auto& counts, const auto& others, const auto& weights) {
      table.add(counts, others, weights);
    });
    if (i >= search.used) break;
    mine = search.stretch(i + lane);
  }
  __syncwarp();
  search.keep(out, search.best_of_words(table.words, table.compact(0, 1 << table.bits)));
}

// The table of a CTA has room for all that a row meets, and is half empty.
constexpr int kCtaBits = std::bit_width(static_cast<unsigned>(2 * kMostPlacesOfAll - 1));
template <class Word>
constexpr int kCtaBytes = static_cast<int>(sizeof(Word)) << kCtaBits;

// As many CTAs of an SM as their tables and registers leave room for.
constexpr int kCtaThreads = 128;
template <class Word>
constexpr int kPartnerCtasPerSm = sizeof(Word) > sizeof(Narrow) ? 10 : 12;

// CTAs for the others, one after another.
template <class Word>
__global__ void __launch_bounds__(kCtaThreads)
    find_partners_by_cta(const __grid_constant__ Level all, const __grid_constant__ Partners out) {
  constexpr int kWarps = kCtaThreads / 32;
  static_assert(kWarps * kNear % 32 == 0);
  constexpr int kLeastBits = std::bit_width(static_cast<unsigned>(kCtaThreads)) - 1;
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ std::uint64_t best_of[kWarps][kNear];
  __shared__ std::int32_t next;
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const std::int32_t many = out.count[1], count = many + out.count[0];
  auto at = static_cast<std::int32_t>(blockIdx.x);
  while (at < count) {
    if (thread == 0)
      next = out.is_stopped() ? count
                              : static_cast<std::int32_t>(gridDim.x) + atomicAdd(out.count + 2, 1);
    const Search search(all, at < many ? out.longer[1][at] : out.longer[0][at - many]);
    const Table<Word> table{
        reinterpret_cast<Word*>(memory),
        min(kCtaBits,
            max(kLeastBits, Table<Word>::bits_for(search.used * search.most, all.clusters)))};
    table.clear(thread, kCtaThreads);
    __syncthreads();
    // Columns of a warp at a time.
    const std::int32_t part = min(32, (search.used + kWarps - 1) / kWarps);
    for (std::int32_t first = warp * part; first < search.used; first += kWarps * part)
      search.read(lane < part ? search.stretch(first + lane) : Stretch{},
                  [&](const auto& counts, const auto& others, const auto& weights) {
                    table.add(counts, others, weights);
                  });
    __syncthreads();
    const int words_of_warp = (1 << table.bits) / kWarps, first = warp * words_of_warp;
    Best best = search.best_of_words(table.words + first, table.compact(first, words_of_warp));
    if (lane < kNear) best_of[warp][lane] = best.own;
    __syncthreads();
    at = next;
    if (warp == 0) {
      best = Best::of((&best_of[0][0])[lane]);
      for (int first = 32; first < kWarps * kNear; first += 32) {
        const std::uint64_t others[1] = {(&best_of[0][0])[first + lane]};
        best.add(others);
      }
      search.keep(out, best);
    }
    // `next` and the best of others are read before they are written for the next cluster.
    __syncthreads();
  }
}

}  // namespace spmmbench::match
