#pragma once
// One warp's view of a segment of bitmap queues (format/bitmap_queues.hpp): it copies the levels
// into a ring in shared memory, unit by unit, and decodes step after step into A fragments.
//
//   ring, 80 levels of 32 words                       a lane's two read positions
//   level  0  [queue 0][queue 1] ... [queue 31]       low:  low half of the word
//   level  1  [queue 0][queue 1] ... [queue 31]       high: high half of the word
//   ...                                               both advance by one level per value
//   level 80..87: levels 0..7 again, so that half a step needs no wrap-around

#include <cstdint>

#include "bitmap_dense/work.hpp"
#include "common/mbarrier.cuh"
#include "ptx/cuda_ptx.cuh"
#include "ptx/ld_shared.cuh"

namespace spmmbench::bitmap_dense {

inline constexpr int kLevelBytes = 128;
inline constexpr int kUnitBytes = BitmapQueues::kUnitLevels * kLevelBytes;
inline constexpr int kRingBytes = BitmapQueues::kRingUnits * kUnitBytes;
inline constexpr int kHalfStepLevels = 8;  // most that half a step takes from one queue
inline constexpr int kMirrorBytes = kHalfStepLevels * kLevelBytes;
inline constexpr int kWarpRingBytes = kRingBytes + kMirrorBytes;
inline constexpr unsigned kFullWarp = 0xFFFFFFFFU;

// The number 1, read from shared memory: the compiler cannot know its value, and keeps it in a
// register.
__device__ inline std::uint32_t opaque_one(std::uint32_t* place) {
  if (threadIdx.x == 0) *place = 1;
  __syncthreads();
  return *static_cast<volatile std::uint32_t*>(place);
}

// The values of one step by register of the fragments, those of its low (even) and of its high
// (odd) column, each in a low half.
struct Values {
  std::uint32_t low[16], high[16];
};
// The registers of four A fragments.
__device__ inline void join_halves(const Values& values, std::uint32_t (&a)[16]) {
#pragma unroll
  for (int q = 0; q < 16; ++q) a[q] = __byte_perm(values.low[q], values.high[q], 0x5410);
}

// The bookkeeping is not that of common/bulk_ring.cuh: every segment begins in slot 0, whichever
// was read last, so each slot has a parity of its own; and the head of slot 0 is copied twice.
class QueueReader {
 public:
  // `ring`: kWarpRingBytes; `full`: kRingUnits barriers, each expecting one arrival; `one`: 1.
  __device__ QueueReader(char* ring, std::uint64_t* full, std::uint32_t one)
      : ring_bytes_(ring),
        ring_(static_cast<std::uint32_t>(__cvta_generic_to_shared(ring))),
        full_(full),
        lane_(threadIdx.x % 32) {
#pragma unroll
    for (int i = 0; i < kHalfStepLevels; ++i) level_of_bit_[i] = one * (kLevelBytes >> i);
  }

  __device__ void begin(const Arguments& args, const BitmapQueues::Segment& segment) {
    const std::int64_t words = segment.first_block * BitmapQueues::kBlockSteps * 32;
    bits_ = reinterpret_cast<const uint4*>(args.bits + words) + lane_;
    hand_over_ = args.hand_over + segment.first_block * 32 + lane_;
    values_ = reinterpret_cast<const char*>(args.values) + segment.first_level * kLevelBytes;
    bytes_left_ = segment.levels * kLevelBytes;
    groups_left_ = segment.steps / BitmapQueues::kGroupSteps;
    low_ = high_ = ring_ + lane_ * 4;
    fill_slot_ = wait_slot_ = 0;
    __syncwarp();  // the last segment's values were read
    for (int unit = 0; unit < BitmapQueues::kRingUnits; ++unit) request_unit();
    next_hand_over_ = *hand_over_;
    next_ = load_group();
    after_ = load_group();
  }

  // The words of the next four steps. At the start of a block of steps the lanes exchange their
  // queues.
  __device__ uint4 next_group(bool block_start) {
    if (block_start) {
      const std::uint32_t from = next_hand_over_;
      hand_over_ += 32;
      if (groups_left_ > 0) next_hand_over_ = *hand_over_;
      low_ = __shfl_sync(kFullWarp, low_, static_cast<int>(from));
      high_ = __shfl_sync(kFullWarp, high_, static_cast<int>(from >> 5));
      flags_ = __ballot_sync(kFullWarp, (from & 1U << 10) != 0);
    }
    const uint4 words = next_;
    next_ = after_;
    after_ = load_group();
    return words;
  }

  // Fetches the values of one step. Another function joins them, so that all loads are in flight
  // before the first is waited for.
  __device__ void fetch(std::uint32_t word, Values& values) {
    if ((flags_ & 1U) != 0) wait_unit();
#pragma unroll
    for (int q = 0; q < 16; ++q) values.low[q] = values.high[q] = 0;
    take<0>(word, values);
    take<kHalfStepLevels>(word, values);
  }
  // After the step's values have arrived.
  __device__ void release() {
    if ((flags_ & 1U << BitmapQueues::kBlockSteps) != 0) {
      __syncwarp();
      request_unit();
    }
    flags_ >>= 1;
  }

 private:
  // The bits of half a step, low and high. Every load has an address register of its own: one that
  // is overwritten by the next address would have to wait until the load has read it.
  template <int kFirst>
  __device__ void take(std::uint32_t word, Values& values) {
    wrap();
    const std::uint32_t low_bits = word >> kFirst, high_bits = word >> (16 + kFirst);
#pragma unroll
    for (int i = 0; i < kHalfStepLevels; ++i) {
      const std::uint32_t low_bit = low_bits & 1U << i, high_bit = high_bits & 1U << i;
      ptx::ld_shared_u16_if<0>(values.low[kFirst + i], low_bit, low_);
      ptx::ld_shared_u16_if<2>(values.high[kFirst + i], high_bit, high_);
      low_ += low_bit * level_of_bit_[i];
      high_ += high_bit * level_of_bit_[i];
    }
  }
  __device__ void wrap() {
    if (low_ >= ring_ + kRingBytes) low_ -= kRingBytes;
    if (high_ >= ring_ + kRingBytes) high_ -= kRingBytes;
  }
  __device__ uint4 load_group() {
    uint4 words = make_uint4(0, 0, 0, 0);
    if (groups_left_ > 0) words = __ldcs(bits_);
    --groups_left_;
    bits_ += 32;
    return words;
  }
  __device__ void request_unit() {
    if (bytes_left_ > 0) {
      if (lane_ == 0) {
        const auto bytes = static_cast<std::uint32_t>(min(bytes_left_, kUnitBytes));
        const std::uint32_t mirrored =
            fill_slot_ == 0 ? min(bytes, static_cast<std::uint32_t>(kMirrorBytes)) : 0;
        std::uint64_t* const full = full_ + fill_slot_;
        mbarrier::arrive_expect(full, bytes + mirrored);
        char* const to = ring_bytes_;
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, to + fill_slot_ * kUnitBytes,
                           values_, bytes, full);
        if (mirrored > 0)
          ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, to + kRingBytes, values_,
                             mirrored, full);
      }
      values_ += kUnitBytes;
      bytes_left_ -= kUnitBytes;
    }
    fill_slot_ = fill_slot_ + 1 == BitmapQueues::kRingUnits ? 0 : fill_slot_ + 1;
  }
  __device__ void wait_unit() {
    mbarrier::wait(full_ + wait_slot_, parity_ >> wait_slot_ & 1U);
    parity_ ^= 1U << wait_slot_;
    wait_slot_ = wait_slot_ + 1 == BitmapQueues::kRingUnits ? 0 : wait_slot_ + 1;
  }

  char* ring_bytes_;
  std::uint32_t ring_;  // its address in shared memory
  std::uint64_t* full_;
  int lane_;
  std::uint32_t level_of_bit_[kHalfStepLevels];  // times bit i: a level
  const uint4* bits_ = nullptr;
  const std::uint16_t* hand_over_ = nullptr;
  const char* values_ = nullptr;
  int bytes_left_ = 0;
  int groups_left_ = 0;
  std::uint32_t low_ = 0, high_ = 0;  // addresses in shared memory
  int fill_slot_ = 0, wait_slot_ = 0;
  std::uint32_t parity_ = 0;  // bit s: of the next wait for slot s
  std::uint32_t flags_ = 0;
  std::uint32_t next_hand_over_ = 0;
  uint4 next_{}, after_{};
};

}  // namespace spmmbench::bitmap_dense
