#pragma once
// Weights of clusters in shared memory.

#include <cstdint>

#include "reorder/match.hpp"
#include "row_order/level.cuh"

namespace spmmbench::match {

// Levels of at most so many clusters have tables of 32-bit words, others of 64.
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

  // Bits of a table in which so many clusters leave a quarter free.
  static __device__ int bits_for(std::int32_t clusters) {
    return max(kLeastBits, 32 - __clz((clusters * 4 + 2) / 3 - 1));
  }
  static __device__ std::int32_t cluster(Word word) {
    return static_cast<std::int32_t>(word >> kWeightBits);
  }
  static __device__ std::int32_t weight(Word word) {
    return static_cast<std::int32_t>(word & ((1U << kWeightBits) - 1U));
  }

  // Before it and after it all threads that use the table wait.
  __device__ void clear(int thread, int threads) const {
    constexpr int kOfStore = sizeof(uint4) / sizeof(Word);
    auto* const stores = reinterpret_cast<uint4*>(words);
    for (int at = thread; at < (1 << bits) / kOfStore; at += threads) stores[at] = {};
  }
  // False where `tries` words are taken by others.
  __device__ bool add(std::int32_t other, std::int32_t of_weight, int tries) const {
    const Word own = static_cast<Word>(other) << kWeightBits | static_cast<Word>(of_weight);
    // 2^32 over the golden ratio: numbers that follow one another are far apart in the upper bits.
    const unsigned hash = static_cast<unsigned>(other) * 0x9E3779B9U;
    // Each number has a step of its own: in nearly full tables runs of taken words would be long.
    const unsigned step = hash >> 4 | 1U;
    unsigned at = hash >> (32 - bits);
    for (; tries > 0; --tries, at += step) {
      Word* const word = words + (at & ((1U << bits) - 1U));
      Word there = *static_cast<volatile Word*>(word);  // most weights are of clusters that it has
      if (there == 0) there = atomicCAS(word, Word{0}, own);
      if (there == 0) return true;
      if (cluster(there) != other) continue;
      atomicAdd(word, static_cast<Word>(of_weight));
      return true;
    }
    return false;
  }
  // A warp moves the words in use of [first, first + count) to `first`. Returns how many they are.
  __device__ std::int32_t compact(int first, int count) const {
    const int lane = threadIdx.x % 32;
    std::int32_t kept = 0;
    for (int at = first + lane; at < first + count; at += 32) {
      const Word word = words[at];
      const unsigned lanes = __ballot_sync(kWarp, word != 0);
      __syncwarp();
      if (word != 0) words[first + kept + __popc(lanes & ((1U << lane) - 1U))] = word;
      kept += __popc(lanes);
      __syncwarp();
    }
    return kept;
  }
};

}  // namespace spmmbench::match
