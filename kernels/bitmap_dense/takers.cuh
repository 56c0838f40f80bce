#pragma once
// How a lane takes the words of its queue (bitmap_dense/format.hpp) from a ring in shared memory
// and makes registers of A fragments of them.
//
//   ring, 64 levels of 32 words
//   level  0  [queue 0][queue 1] ... [queue 31]       a lane reads its queue, and
//   level  1  [queue 0][queue 1] ... [queue 31]       moves down a level per word
//   ...
//   level 64..71: those after level 63, so that half a step needs no wrap-around

#include <cstdint>
#include <type_traits>

#include "bitmap_dense/format.hpp"
#include "ptx/ld_shared.cuh"
#include "ptx/prmt.cuh"

namespace spmmbench::bitmap_dense {

inline constexpr int kLevelBytes = 128;
inline constexpr int kUnitBytes = BitmapPanels::kUnitLevels * kLevelBytes;
inline constexpr int kRingBytes = BitmapPanels::kRingUnits * kUnitBytes;
inline constexpr int kHalfStepLevels = 8;  // most that half a step takes from a queue
inline constexpr int kOverhangBytes = kHalfStepLevels * kLevelBytes;
inline constexpr unsigned kFullWarp = 0xFFFFFFFFU;

// Each word is a register.
class PairTaker {
 public:
  static constexpr int kConstantBytes = 4;

  // The number 1, read from shared memory: the compiler cannot know its value, and keeps it in a
  // register. Every thread of the CTA calls this; a barrier must follow.
  __device__ static void write_constants(char* constants) {
    if (threadIdx.x == 0) *reinterpret_cast<std::uint32_t*>(constants) = 1;
  }
  __device__ explicit PairTaker(const char* constants) {
    const std::uint32_t one = *reinterpret_cast<const volatile std::uint32_t*>(constants);
#pragma unroll
    for (int i = 0; i < kHalfStepLevels; ++i) level_of_bit_[i] = one * (kLevelBytes >> i);
  }

  // The bits of the step to take next.
  __device__ void look_up(std::uint32_t bits) { bits_ = bits; }
  // The registers of half `kHalf` of a step. `at`: the address of the next word in shared memory.
  // Every load has an address register of its own: one that is overwritten by the next address
  // would have to wait until the load has read it.
  template <int kHalf>
  __device__ void take(std::uint32_t& at, std::uint32_t (&a)[BitmapPanels::kStepRegisters]) const {
    constexpr int kFirst = kHalf * kHalfStepLevels;
    const std::uint32_t half = bits_ >> kFirst;
#pragma unroll
    for (int i = 0; i < kHalfStepLevels; ++i) a[kFirst + i] = 0;
#pragma unroll
    for (int i = 0; i < kHalfStepLevels; ++i) {
      const std::uint32_t bit = half & 1U << i;
      ptx::ld_shared_if(a[kFirst + i], bit, at);
      at += bit * level_of_bit_[i];
    }
  }

 private:
  std::uint32_t level_of_bit_[kHalfStepLevels];  // times bit i: a level
  std::uint32_t bits_ = 0;
};

// Four bits tell which of the next values go where in two registers. A table has an entry for them.
class ValueTaker {
 public:
  static constexpr int kConstantBytes = 128;

  // Writes the table. An entry has two words. x: the selector of the first register in the low
  // half, then the number of whole words, and 16 where a value is left over. y: the selector of the
  // second register, and all ones in the high half where all bits are set. Every thread of the CTA
  // calls this; a barrier must follow.
  __device__ static void write_constants(char* constants) {
    const unsigned bits = threadIdx.x;
    if (bits > kAllBits) return;
    constexpr unsigned kZeroOfFirst = 2, kZeroOfSecond = 3;  // halves of two words that are zero
    unsigned selectors[2] = {0, 0}, taken = 0;
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned zero = i < 2 ? kZeroOfFirst : kZeroOfSecond;
      const unsigned half = (bits >> i & 1) != 0 ? taken++ : zero;
      selectors[i / 2] |= (0x10 + 0x22 * half) << (i % 2 * 8);  // its two bytes
    }
    reinterpret_cast<uint2*>(constants)[bits] = {selectors[0] | taken / 2 << 16 | taken % 2 << 28,
                                                 selectors[1] | (bits == kAllBits ? kHighHalf : 0)};
  }
  __device__ explicit ValueTaker(const char* constants)
      : table_(static_cast<std::uint32_t>(__cvta_generic_to_shared(constants))),
        table_bytes_((table_ & 0xFFU) * 0x01010101U) {}

  // The bits of the step to take next. Their entries are read ahead of the words, which have to
  // wait for them.
  __device__ void look_up(std::uint32_t bits) {
    constexpr std::uint32_t kOffsets = 0x78787878;  // four bits, times the bytes of an entry
    const std::uint32_t halves[2] = {(bits << 3 & kOffsets) | table_bytes_,
                                     (bits >> 1 & kOffsets) | table_bytes_};
#pragma unroll
    for (int i = 0; i < 2 * BitmapPanels::kStepFragments; ++i)
      entries_[i] = ptx::ld_shared_v2(ptx::prmt(halves[i % 2], table_, 0x7650 + i / 2));
  }
  // As for pairs.
  template <int kHalf>
  __device__ void take(std::uint32_t& at, std::uint32_t (&a)[BitmapPanels::kStepRegisters]) const {
    constexpr int kFragments = BitmapPanels::kStepFragments / 2;
    constexpr unsigned kWords = kLevelBytes << 16, kLeft = kLevelBytes / 16 << 24;
#pragma unroll
    for (int i = 0; i < kFragments; ++i) {
      const int fragment = kHalf * kFragments + i;
      std::uint32_t* const to = a + 4 * fragment;
      const uint2 first = entries_[2 * fragment], second = entries_[2 * fragment + 1];
      expand(to, first, ptx::ld_shared<0>(at), ptx::ld_shared<kLevelBytes>(at));
      // The other values begin in the word where these ended.
      at = __dp4a(first.x, kWords, at);
      const std::uint32_t left = first.x >> 24;
      const std::uint32_t w0 = ptx::ld_shared<0>(at), w1 = ptx::ld_shared<kLevelBytes>(at);
      expand(to + 2, second, __funnelshift_r(w0, w1, left), w1 >> left);
      at = __dp4a(first.x | second.x, kLeft, __dp4a(second.x, kWords, at));
    }
  }

 private:
  static constexpr unsigned kAllBits = 15, kHighHalf = 0xFFFF0000U;

  // Two registers of the values in two words.
  __device__ static void expand(std::uint32_t* to, uint2 entry, std::uint32_t w0,
                                std::uint32_t w1) {
    to[0] = ptx::prmt(w0, 0, entry.x);
    to[1] = ptx::prmt(w0, w1 & (entry.y | ~kHighHalf), entry.y);
  }

  std::uint32_t table_, table_bytes_;  // its address, and the lowest byte of it in every byte
  uint2 entries_[2 * BitmapPanels::kStepFragments];
};

template <class Queues>
using TakerOf = std::conditional_t<Queues::kPairs, PairTaker, ValueTaker>;

}  // namespace spmmbench::bitmap_dense
