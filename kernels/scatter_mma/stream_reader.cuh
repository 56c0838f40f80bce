#pragma once
// One warp's view of a segment of gap streams (format/gap_streams.hpp): it loads groups of
// entries into registers and scatters them into a ring of slots in shared memory.
//
//   lane L:  bank L of every line           ring of 4 slots, 32 lines of 128 bytes each
//
//   even stream  --> low halves  -----+     [slot being filled][next][one more][being cleared]
//   odd stream   --> high halves -----+
//
// The place of an entry is the sum of the gaps so far. Sums of four gaps are made at once, a byte
// each: a multiplication by 0x01010101 adds to each byte those below it. Bytes count words modulo
// the ring's 128, and one dot product turns a byte into an address.

#include <cstdint>

#include "format/gap_streams.hpp"
#include "ptx/ld_global.cuh"
#include "ptx/st_shared.cuh"
#include "scatter_mma/work.hpp"

namespace spmmbench::scatter_mma {

inline constexpr int kLineBytes = 128;  // a word of every lane
inline constexpr int kSlotBytes = GapStreams::kSlotWords * kLineBytes;
inline constexpr int kRingBytes = GapStreams::kRingSlots * kSlotBytes;

class StreamReader {
 public:
  // `ring`: the address of the first slot. All slots are zeros.
  __device__ explicit StreamReader(std::uint32_t ring)
      : lane_(threadIdx.x % 32), bank_(ring + lane_ * 4) {}

  // A new segment, whose first slot is slot `ring_slot` of the ring.
  __device__ void begin(const Arguments& args, const GapStreams::Segment& segment, int ring_slot) {
    group_ = reinterpret_cast<const char*>(args.groups + segment.first_group) + lane_ * kLaneBytes;
    ends_ = args.ends + segment.first_group;
    even_ = odd_ = static_cast<std::uint32_t>(ring_slot) * kSlotStep;
    load(first_);
  }

  // Scatters the segment of `slots` slots, and calls slot_done() when one is complete, in order.
  template <class SlotDone>
  __device__ void run(int slots, SlotDone slot_done) {
    while (true) {
      load_after(first_, second_);
      if (scatter_group(first_, slots, slot_done)) return;
      load_after(second_, first_);
      if (scatter_group(second_, slots, slot_done)) return;
    }
  }

 private:
  static constexpr int kLaneBytes = 16;  // of a batch's values, and of a group's gaps
  static constexpr int kBatchBytes = GapStreams::kLanes * kLaneBytes;
  static constexpr std::uint32_t kEveryByte = 0x01010101U;
  static constexpr std::uint32_t kSlotStep = GapStreams::kSlotWords * kEveryByte;
  static constexpr std::uint32_t kRingMask =
      (GapStreams::kRingSlots * GapStreams::kSlotWords - 1) * kEveryByte;
  static constexpr std::uint32_t kGapMask = GapStreams::kMostGap * kEveryByte;
  static_assert(kRingMask == 0x7F7F7F7FU && kLineBytes == 0x80);
  static_assert(GapStreams::kHalves * GapStreams::kBatch * 2 == kLaneBytes);
  static_assert(GapStreams::kBatch == 4 && GapStreams::kGroupBatches * 4 == kLaneBytes);
  static_assert(GapStreams::kGroupsAhead == 1);

  struct Group {  // what one lane has of it
    uint4 values[GapStreams::kGroupBatches];
    uint4 gaps;
    std::uint32_t ends;
  };

  // All loads of a group are issued together. A warp has six counters of loads on their way, and
  // waits for all loads of a counter; those of a slot must not wait for those from memory.
  __device__ void load(Group& to) {
#pragma unroll
    for (int b = 0; b < GapStreams::kGroupBatches; ++b)
      to.values[b] = ptx::ld_global_nc_no_allocate_v4(group_ + b * kBatchBytes);
    to.gaps = ptx::ld_global_nc_no_allocate_v4(group_ + GapStreams::kGroupBatches * kBatchBytes);
    to.ends = ptx::ld_global_nc(ends_);
    group_ += sizeof(GapStreams::Group);
    ++ends_;
  }

  // Loads the next group when this one has arrived. The loads of both count together, so a use of
  // this one would wait for the next one too if that were on its way already. The condition always
  // holds, as batches that no slot ends after have zeros in `ends`; it makes the loads wait.
  __device__ void load_after(const Group& arrived, Group& next) {
    if (arrived.ends != ~0U) load(next);
  }

  // Returns whether the last slot was completed.
  template <class SlotDone>
  __device__ bool scatter_group(const Group& group, int& slots, SlotDone slot_done) {
    const std::uint32_t gaps[4] = {group.gaps.x, group.gaps.y, group.gaps.z, group.gaps.w};
#pragma unroll
    for (int b = 0; b < GapStreams::kGroupBatches; ++b) {
      scatter(group.values[b], gaps[b]);
      if ((b + 1) % GapStreams::kEndBatches != 0) continue;
      for (std::uint32_t ended = group.ends >> (8 * b) & 0xFFU; ended > 0; --ended) {
        slot_done();
        --slots;
      }
      if (slots == 0) return true;
    }
    return false;
  }
  // The lines in which four entries lie. `last`: the word of the entry before, in every byte.
  __device__ static std::uint32_t lines_of(std::uint32_t gaps, std::uint32_t& last) {
    const std::uint32_t words = ((gaps & kGapMask) * kEveryByte + last) & kRingMask;
    last = __byte_perm(words, 0, 0x3333);
    return words;
  }
  __device__ void scatter(const uint4& values, std::uint32_t gaps) {
    const std::uint32_t even = lines_of(gaps, even_), odd = lines_of(gaps >> 4, odd_);
    const std::uint32_t high = bank_ + 2;
    ptx::st_shared_low_half(__dp4a(even, 0x80U, bank_), values.x);
    ptx::st_shared_high_half(__dp4a(even, 0x8000U, bank_), values.x);
    ptx::st_shared_low_half(__dp4a(even, 0x800000U, bank_), values.y);
    ptx::st_shared_high_half(__dp4a(even, 0x80000000U, bank_), values.y);
    ptx::st_shared_low_half(__dp4a(odd, 0x80U, high), values.z);
    ptx::st_shared_high_half(__dp4a(odd, 0x8000U, high), values.z);
    ptx::st_shared_low_half(__dp4a(odd, 0x800000U, high), values.w);
    ptx::st_shared_high_half(__dp4a(odd, 0x80000000U, high), values.w);
  }

  int lane_;
  std::uint32_t bank_;
  std::uint32_t even_ = 0, odd_ = 0;  // the word of the last entry, in every byte
  const char* group_ = nullptr;
  const std::uint32_t* ends_ = nullptr;
  Group first_, second_;
};

}  // namespace spmmbench::scatter_mma
