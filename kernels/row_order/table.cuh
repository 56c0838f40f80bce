#pragma once
// Weights of clusters in shared memory.

#include <cstdint>

#include "reorder/match.hpp"
#include "row_order/level.cuh"

namespace spmmbench::match {

// Levels of at most this many clusters have tables of 32-bit words, others of 64.
constexpr int kWeightBits = 12;
constexpr std::int32_t kMostOfNarrow = 1 << (32 - kWeightBits);
using Narrow = unsigned;
using Wide = unsigned long long;

// Adds up weights by cluster, open addressing: a word has a cluster and its weight, and is 0 where
// it is free.
template <class Word>
struct Table {
  Word* words;
  int bits;  // of the number of words, at least kLeastBits

  static constexpr int kLeastBits = 6;
  static_assert(kWhole * kMostColumns < 1 << kWeightBits);

  // Bits of a table in which this many of `clusters` leave a quarter free, and all of them half.
  static __device__ int bits_for(std::int32_t places, std::int32_t clusters) {
    const std::int32_t words = (places * 4 + 2) / 3;
    return max(kLeastBits,
               32 - __clz(max(2, min(words, clusters < words ? 2 * clusters : words)) - 1));
  }
  static __device__ std::int32_t cluster(Word word) {
    return static_cast<std::int32_t>(word >> kWeightBits);
  }
  static __device__ std::int32_t weight(Word word) {
    return static_cast<std::int32_t>(word & ((1U << kWeightBits) - 1U));
  }

  // Where a cluster may be.
  struct Probe {
    unsigned place, step;

    // 2^32 over the golden ratio: numbers that follow one another are far apart in the upper bits.
    // Each number has a step of its own: in nearly full tables runs of taken words would be long.
    __device__ Probe(Word item, int bits) {
      const unsigned hash = static_cast<unsigned>(cluster(item)) * 0x9E3779B9U;
      place = hash >> (32 - bits);
      step = hash >> 4 | 1U;
    }
    __device__ unsigned at(int bits) const { return place & ((1U << bits) - 1U); }
    __device__ void next() { place += step; }
  };

  // Before it and after it all threads that use the table wait.
  __device__ void clear(int thread, int threads) const {
    constexpr int kOfStore = sizeof(uint4) / sizeof(Word);
    auto* const stores = reinterpret_cast<uint4*>(words);
    for (int at = thread; at < (1 << bits) / kOfStore; at += threads) stores[at] = {};
  }
  // Adds the items of each lane that count: never of more clusters than the table has words. A lane
  // goes on to its next item while others look for a word, since a warp waits for the lane that
  // meets most taken words.
  template <int kItems>
  __device__ void add(const bool (&counts)[kItems], const std::int32_t (&others)[kItems],
                      const std::int32_t (&weights)[kItems]) const {
    Word items[kItems];  // 0: does not count
#pragma unroll
    for (int i = 0; i < kItems; ++i)
      items[i] = counts[i]
                     ? static_cast<Word>(others[i]) << kWeightBits | static_cast<Word>(weights[i])
                     : 0;
    Probe probe(items[0], bits);
    for (int left = kItems; left > 0;) {
      const Word own = items[0];
      if (own != 0) {
        Word* const word = words + probe.at(bits);
        Word there = *static_cast<volatile Word*>(word);  // most are of clusters that it has
        if (there == 0) there = atomicCAS(word, Word{0}, own);
        const bool is_own = there != 0 && cluster(there) == cluster(own);
        if (is_own) atomicAdd(word, static_cast<Word>(weight(own)));
        if (there != 0 && !is_own) {
          probe.next();
          continue;
        }
      }
      --left;
#pragma unroll
      for (int i = 0; i + 1 < kItems; ++i) items[i] = items[i + 1];
      probe = Probe(items[0], bits);
    }
    __syncwarp();
  }
  // A warp moves the words in use of [first, first + count) to `first`, where `count` is a multiple
  // of 32. Returns how many they are.
  __device__ std::int32_t compact(int first, int count) const {
    constexpr int kAtOnce = 4;
    const int lane = threadIdx.x % 32;
    std::int32_t kept = 0;
    for (int begin = 0; begin < count; begin += kAtOnce * 32) {
      Word word[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        word[i] = begin + i * 32 < count ? words[first + begin + i * 32 + lane] : 0;
      __syncwarp();
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const unsigned lanes = __ballot_sync(kWarp, word[i] != 0);
        if (word[i] != 0) words[first + kept + __popc(lanes & ((1U << lane) - 1U))] = word[i];
        kept += __popc(lanes);
      }
      __syncwarp();
    }
    return kept;
  }
};

}  // namespace spmmbench::match
