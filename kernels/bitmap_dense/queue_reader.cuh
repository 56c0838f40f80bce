#pragma once
// One warp's view of a segment of bitmap queues (bitmap_dense/format.hpp): it copies the levels
// into a ring in shared memory, unit by unit, and the bits into another, block by block, and reads
// step after step into A fragments.

#include <cstdint>
#include <type_traits>

#include "bitmap_dense/takers.cuh"
#include "bitmap_dense/work.hpp"
#include "common/bulk_ring.cuh"
#include "common/mbarrier.cuh"
#include "ptx/cuda_ptx.cuh"

namespace spmmbench::bitmap_dense {

inline constexpr int kBlockStages = 2;  // of a warp in shared memory
inline constexpr int kWarpBarriers = BitmapPanels::kRingUnits + kBlockStages;

// The bookkeeping is not that of common/bulk_ring.cuh: every segment begins in slot 0, whichever
// was read last, so each slot has a parity of its own; and with the last slot's levels those after
// them are copied.
template <class Queues>
class QueueReader {
  using Block = typename Queues::Block;
  using Taker = TakerOf<Queues>;
  static constexpr int kBlockBytes = sizeof(Block);

 public:
  static constexpr int kWarpBytes = kRingBytes + kOverhangBytes + kBlockStages * kBlockBytes;
  // A lane's bits of four steps.
  using Group = std::conditional_t<Queues::kPairs, uint2, uint4>;

  // `ring`: kWarpBytes; `full`: kWarpBarriers barriers, each expecting one arrival; `constants`:
  // what the taker wrote, aligned to its size.
  __device__ QueueReader(char* ring, std::uint64_t* full, const char* constants)
      : ring_bytes_(ring),
        ring_(static_cast<std::uint32_t>(__cvta_generic_to_shared(ring))),
        full_(full),
        lane_(threadIdx.x % 32),
        taker_(constants),
        blocks_(ring + kRingBytes + kOverhangBytes, full + BitmapPanels::kRingUnits) {}

  __device__ void begin(const Arguments& args, const BitmapPanels::Segment& segment) {
    constexpr int kBlockSteps = BitmapPanels::kBlockSteps;
    words_ = reinterpret_cast<const char*>(args.words) + segment.first_level * kLevelBytes;
    bytes_left_ = segment.levels * kLevelBytes;
    at_ = ring_ + lane_ * 4;
    fill_slot_ = wait_slot_ = 0;
    __syncwarp();  // the last segment's words were read
    blocks_.begin(args.blocks + segment.first_block * kBlockBytes,
                  (segment.steps + kBlockSteps - 1) / kBlockSteps * kBlockBytes);
    for (int stage = 0; stage < kBlockStages; ++stage) blocks_.request(lane_ == 0);
    for (int unit = 0; unit < BitmapPanels::kRingUnits; ++unit) request_unit();
  }

  // The bits of the next four steps. At the start of a block of steps the lanes exchange their
  // queues.
  __device__ Group next_group(bool block_start) {
    if (!block_start) return second_;
    const auto* const block = reinterpret_cast<const Block*>(blocks_.next());
    const std::uint32_t from = block->hand_over[lane_];
    const Group first = reinterpret_cast<const Group&>(block->bits[0][lane_]);
    second_ = reinterpret_cast<const Group&>(block->bits[1][lane_]);
    at_ = __shfl_sync(kFullWarp, at_, static_cast<int>(from));
    flags_ = __ballot_sync(kFullWarp, (from & Block::kFlag) != 0);
    __syncwarp();  // all lanes have read the block
    blocks_.request(lane_ == 0);
    return first;
  }

  // The bits of step `step` of a group, and above them perhaps others.
  __device__ static std::uint32_t bits_of(const Group& group, int step) {
    if constexpr (Queues::kPairs) return (step < 2 ? group.x : group.y) >> step % 2 * 16;
    else return step == 0 ? group.x : step == 1 ? group.y : step == 2 ? group.z : group.w;
  }
  // The bits of the step that is fetched next.
  __device__ void look_up(std::uint32_t bits) { taker_.look_up(bits); }
  // Reads the words of a step into the registers of four A fragments.
  __device__ void fetch(std::uint32_t (&a)[BitmapPanels::kStepRegisters]) {
    if ((flags_ & 1U) != 0) wait_unit();
    wrap_around();
    taker_.template take<0>(at_, a);
    wrap_around();
    taker_.template take<1>(at_, a);
  }
  // After the step's words have arrived.
  __device__ void release() {
    if ((flags_ & 1U << BitmapPanels::kBlockSteps) != 0) {
      __syncwarp();
      request_unit();
    }
    flags_ >>= 1;
  }

 private:
  __device__ void wrap_around() {
    if (at_ >= ring_ + kRingBytes) at_ -= kRingBytes;
  }
  __device__ void request_unit() {
    const bool last_slot = fill_slot_ == BitmapPanels::kRingUnits - 1;
    if (lane_ == 0 && bytes_left_ > 0) {
      const int most = last_slot ? kUnitBytes + kOverhangBytes : kUnitBytes;
      const auto bytes = static_cast<std::uint32_t>(min(bytes_left_, most));
      std::uint64_t* const full = full_ + fill_slot_;
      mbarrier::arrive_expect(full, bytes);
      ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global,
                         ring_bytes_ + fill_slot_ * kUnitBytes, words_, bytes, full);
    }
    words_ += kUnitBytes;
    bytes_left_ -= kUnitBytes;
    fill_slot_ = last_slot ? 0 : fill_slot_ + 1;
  }
  __device__ void wait_unit() {
    mbarrier::wait(full_ + wait_slot_, parity_ >> wait_slot_ & 1U);
    parity_ ^= 1U << wait_slot_;
    wait_slot_ = wait_slot_ + 1 == BitmapPanels::kRingUnits ? 0 : wait_slot_ + 1;
  }

  char* ring_bytes_;
  std::uint32_t ring_;  // its address in shared memory
  std::uint64_t* full_;
  int lane_;
  Taker taker_;
  const char* words_ = nullptr;
  int bytes_left_ = 0;
  std::uint32_t at_ = 0;  // of the next word, an address in shared memory
  int fill_slot_ = 0, wait_slot_ = 0;
  std::uint32_t parity_ = 0;  // bit s: of the next wait for slot s
  std::uint32_t flags_ = 0;
  BulkRing<kBlockStages, kBlockBytes> blocks_;
  Group second_{};  // bits of the second group of the block
};

}  // namespace spmmbench::bitmap_dense
