#pragma once
// One warp's view of a segment of bitmap queues (format/bitmap_queues.hpp): it copies the levels
// into a ring in shared memory, unit by unit, and the bits into another, block by block, and reads
// step after step into A fragments.
//
//   ring, 64 levels of 32 words
//   level  0  [queue 0][queue 1] ... [queue 31]       a lane reads its queue, and
//   level  1  [queue 0][queue 1] ... [queue 31]       moves down a level per pair
//   ...
//   level 64..71: those after level 63, so that half a step needs no wrap-around

#include <cstdint>

#include "bitmap_dense/work.hpp"
#include "common/bulk_ring.cuh"
#include "common/mbarrier.cuh"
#include "ptx/cuda_ptx.cuh"
#include "ptx/ld_shared.cuh"

namespace spmmbench::bitmap_dense {

inline constexpr int kLevelBytes = 128;
inline constexpr int kUnitBytes = BitmapQueues::kUnitLevels * kLevelBytes;
inline constexpr int kRingBytes = BitmapQueues::kRingUnits * kUnitBytes;
inline constexpr int kHalfStepLevels = 8;  // most that half a step takes from a queue
inline constexpr int kOverhangBytes = kHalfStepLevels * kLevelBytes;
inline constexpr int kBlockStages = 2;  // of a warp in shared memory
inline constexpr int kBlockBytes = sizeof(BitmapQueues::Block);
inline constexpr int kWarpRingBytes = kRingBytes + kOverhangBytes + kBlockStages * kBlockBytes;
inline constexpr int kWarpBarriers = BitmapQueues::kRingUnits + kBlockStages;
inline constexpr unsigned kFullWarp = 0xFFFFFFFFU;

// The number 1, read from shared memory: the compiler cannot know its value, and keeps it in a
// register.
__device__ inline std::uint32_t opaque_one(std::uint32_t* place) {
  if (threadIdx.x == 0) *place = 1;
  __syncthreads();
  return *static_cast<volatile std::uint32_t*>(place);
}

// The bookkeeping is not that of common/bulk_ring.cuh: every segment begins in slot 0, whichever
// was read last, so each slot has a parity of its own; and with the last slot's levels those after
// them are copied.
class QueueReader {
 public:
  // `ring`: kWarpRingBytes; `full`: kWarpBarriers barriers, each expecting one arrival; `one`: 1.
  __device__ QueueReader(char* ring, std::uint64_t* full, std::uint32_t one)
      : ring_bytes_(ring),
        ring_(static_cast<std::uint32_t>(__cvta_generic_to_shared(ring))),
        full_(full),
        lane_(threadIdx.x % 32),
        blocks_(ring + kRingBytes + kOverhangBytes, full + BitmapQueues::kRingUnits) {
#pragma unroll
    for (int i = 0; i < kHalfStepLevels; ++i) level_of_bit_[i] = one * (kLevelBytes >> i);
  }

  __device__ void begin(const Arguments& args, const BitmapQueues::Segment& segment) {
    constexpr int kBlockSteps = BitmapQueues::kBlockSteps;
    pairs_ = reinterpret_cast<const char*>(args.pairs) + segment.first_level * kLevelBytes;
    bytes_left_ = segment.levels * kLevelBytes;
    at_ = ring_ + lane_ * 4;
    fill_slot_ = wait_slot_ = 0;
    __syncwarp();  // the last segment's pairs were read
    blocks_.begin(reinterpret_cast<const char*>(args.blocks + segment.first_block),
                  (segment.steps + kBlockSteps - 1) / kBlockSteps * kBlockBytes);
    for (int stage = 0; stage < kBlockStages; ++stage) blocks_.request(lane_ == 0);
    for (int unit = 0; unit < BitmapQueues::kRingUnits; ++unit) request_unit();
  }

  // The bits of the next four steps. At the start of a block of steps the lanes exchange their
  // queues.
  __device__ uint2 next_group(bool block_start) {
    if (!block_start) return second_;
    const auto* const block = reinterpret_cast<const BitmapQueues::Block*>(blocks_.next());
    const std::uint32_t from = block->hand_over[lane_];
    const uint2 first = reinterpret_cast<const uint2&>(block->bits[0][lane_]);
    second_ = reinterpret_cast<const uint2&>(block->bits[1][lane_]);
    at_ = __shfl_sync(kFullWarp, at_, static_cast<int>(from));
    flags_ = __ballot_sync(kFullWarp, (from & BitmapQueues::Block::kFlag) != 0);
    __syncwarp();  // all lanes have read the block
    blocks_.request(lane_ == 0);
    return first;
  }

  // Reads the pairs of one step, which are the registers of four A fragments.
  __device__ void fetch(std::uint32_t bits, std::uint32_t (&a)[BitmapQueues::kStepPairs]) {
    if ((flags_ & 1U) != 0) wait_unit();
#pragma unroll
    for (std::uint32_t& pair : a) pair = 0;
    take<0>(bits, a);
    take<kHalfStepLevels>(bits, a);
  }
  // After the step's pairs have arrived.
  __device__ void release() {
    if ((flags_ & 1U << BitmapQueues::kBlockSteps) != 0) {
      __syncwarp();
      request_unit();
    }
    flags_ >>= 1;
  }

 private:
  // The bits of half a step. Every load has an address register of its own: one that is overwritten
  // by the next address would have to wait until the load has read it.
  template <int kFirst>
  __device__ void take(std::uint32_t bits, std::uint32_t (&a)[BitmapQueues::kStepPairs]) {
    if (at_ >= ring_ + kRingBytes) at_ -= kRingBytes;
    const std::uint32_t half = bits >> kFirst;
#pragma unroll
    for (int i = 0; i < kHalfStepLevels; ++i) {
      const std::uint32_t bit = half & 1U << i;
      ptx::ld_shared_if(a[kFirst + i], bit, at_);
      at_ += bit * level_of_bit_[i];
    }
  }
  __device__ void request_unit() {
    const bool last_slot = fill_slot_ == BitmapQueues::kRingUnits - 1;
    if (lane_ == 0 && bytes_left_ > 0) {
      const int most = last_slot ? kUnitBytes + kOverhangBytes : kUnitBytes;
      const auto bytes = static_cast<std::uint32_t>(min(bytes_left_, most));
      std::uint64_t* const full = full_ + fill_slot_;
      mbarrier::arrive_expect(full, bytes);
      ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global,
                         ring_bytes_ + fill_slot_ * kUnitBytes, pairs_, bytes, full);
    }
    pairs_ += kUnitBytes;
    bytes_left_ -= kUnitBytes;
    fill_slot_ = last_slot ? 0 : fill_slot_ + 1;
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
  const char* pairs_ = nullptr;
  int bytes_left_ = 0;
  std::uint32_t at_ = 0;  // of the next pair, an address in shared memory
  int fill_slot_ = 0, wait_slot_ = 0;
  std::uint32_t parity_ = 0;  // bit s: of the next wait for slot s
  std::uint32_t flags_ = 0;
  BulkRing<kBlockStages, kBlockBytes> blocks_;
  uint2 second_{};  // bits of the second group of the block
};

}  // namespace spmmbench::bitmap_dense
