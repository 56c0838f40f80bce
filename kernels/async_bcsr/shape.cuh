#pragma once
// What the parts of async_bcsr share: the compile-time shape of a variant, its arguments and its
// shared memory.

#include <cuda.h>

#include <cstdint>
#include <type_traits>

#include "async_bcsr/format.hpp"
#include "async_bcsr/work.hpp"
#include "common/hopper_ring.cuh"
#include "ptx/wgmma.cuh"
#include "spmmbench/block_scales.hpp"
#include "spmmbench/device.hpp"

namespace spmmbench::async_bcsr {

inline constexpr int kUnitRows = BcsrGroups::kUnitRows;
inline constexpr int kHeight = BcsrStep::kHeight;  // unit rows per CTA
inline constexpr int kLineBytes = 128;             // the swizzle's span: one step of k
inline constexpr int kMmaBytes = 32;               // of k in one instruction
inline constexpr int kTileBytes = kUnitRows * kLineBytes;
inline constexpr int kWarpgroup = 128;
inline constexpr int kMaxStages = 8;

// A DenseView for the device: element `at` of line `line` is data[line * ld + at].
struct Lines {
  void* data;
  std::int64_t lines, length, ld;

  Lines() = default;
  explicit Lines(const DenseView& v)
      : data(v.data), lines(v.lines()), length(v.line_length()), ld(v.ld) {}
};

struct Arguments {
  const BcsrStep* steps;
  const Work* work;
  const std::int32_t* work_ptr;  // persistent grid: list of each cluster; null: one each
  int stages;
  int bk;                // columns of a stored block
  const void* a_values;  // for the loader without TMA
  Lines b;
  bool b_whole;  // row-major B: one box holds all columns of a tile
  Layout layout_c;
  ElementType type_c;
  std::int64_t columns_c;
  float scale;  // of A and B, in fp8
  // With scales of blocks: those of A and their line (block_scales.hpp), and a map of those of B
  // whose box has a block's rows and the columns of a tile.
  const float* block_scales;
  int scale_line;
  CUtensorMap map_scales;
};

enum class Loader { tma, cp_async };
// scaled: promoted, and on the way multiplied by the scales of the blocks.
enum class Sums { whole, promoted, scaled };

// kHeight unit rows, one consumer warpgroup each, times kTileN columns of C per CTA. Clusters of
// kCluster CTAs take neighbouring column tiles of one group and share A's tiles by multicast.
template <class Input_, Layout kLayoutB_, int kTileN_, int kCluster_ = 1,
          Loader kLoader_ = Loader::tma, bool kSpecialised_ = true, Sums kSums_ = Sums::whole>
struct Shape {
  using Input = Input_;
  using Element = std::conditional_t<std::is_same_v<Input, ptx::Tf32>, float, Input>;
  static constexpr Layout kLayoutB = kLayoutB_;
  static constexpr int kTileN = kTileN_;
  static constexpr Loader kLoader = kLoader_;
  static constexpr bool kSpecialised = kSpecialised_;
  static constexpr int kCluster = kCluster_;

  static constexpr ptx::Major kMajorB =
      kLayoutB == Layout::col_major ? ptx::Major::k : ptx::Major::mn;
  static constexpr int kStepK = kLineBytes / sizeof(Element);
  // In fp8 tensor cores keep 14 bits of a sum. With promoted sums the products of every step, of
  // this many columns at a time, are summed alone and then added in fp32.
  static constexpr Sums kSums = kSums_;
  static constexpr bool kScaled = sizeof(Element) == 1;
  static constexpr bool kPromotes = kSums != Sums::whole;
  static constexpr bool kBlockScales = kSums == Sums::scaled;
  static constexpr int kPromotedN = kTileN > kUnitRows ? kTileN / 2 : kTileN;
  static constexpr int kTilesB = kTileN / kUnitRows;  // of 64 x 128 bytes
  static constexpr int kScaleBytes = kBlockScales ? kTileN * static_cast<int>(sizeof(float)) : 0;
  // Tiles of A, tiles of B, scales of B. The swizzle has tiles begin at multiples of kSwizzleBytes.
  static constexpr int kSwizzleBytes = 1024;
  static constexpr int kStageBytes =
      (kHeight + kTilesB) * kTileBytes +
      (kScaleBytes + kSwizzleBytes - 1) / kSwizzleBytes * kSwizzleBytes;
  // Two CTAs share a multiprocessor where their accumulators leave room: one multiplies while the
  // other stores.
  static constexpr int kBlocksPerSm = kTileN < (kPromotes ? 128 : 256) && kSpecialised ? 2 : 1;
  // Pieces of C, per consumer, on their way to memory.
  static constexpr int kChunks = kBlocksPerSm == 2 ? 1 : 2;
  static constexpr int kStagingBytes = kHeight * kChunks * kTileBytes;
  static constexpr int kConsumers = kHeight * kWarpgroup;
  // setmaxnreg moves registers between whole warpgroups. Two CTAs leave too few registers for a
  // producer warpgroup, so their producer is one warp.
  static constexpr bool kMovesRegisters = kSpecialised && kBlocksPerSm == 1;
  static constexpr int kProducers = !kSpecialised ? 0 : kMovesRegisters ? kWarpgroup : 32;
  static constexpr int kThreads = kConsumers + kProducers;
  static constexpr int kLoaders = kSpecialised ? kProducers : kConsumers;
  static constexpr RoleRegisters kRoleRegisters =  // of 65536 / kThreads at entry
      kMovesRegisters ? RoleRegisters{.producer = 56, .consumer = 224} : RoleRegisters{};
  using Ring = HopperRing<kMaxStages, kStageBytes, RingSize::at_launch>;

  static_assert(kMajorB == ptx::Major::k || sizeof(Element) == 2,
                "wgmma reads operands of 8 and of 32 bits K-major only");
  static_assert(!kPromotes || kScaled);
  static_assert(!kBlockScales ||
                (kLoader == Loader::tma && kSpecialised && kStepK == kScaledBlock));
  static_assert(kCluster == 1 || (kLoader == Loader::tma && kSpecialised));
};

// What the producer tells the consumers with each stage.
struct alignas(16) StageHead {
  static constexpr std::uint32_t kLastStep = 1U << kHeight;    // of a block of C
  static constexpr std::uint32_t kLastBlock = kLastStep << 1;  // of the CTA
  std::uint32_t flags;                                         // bit r: unit row r has a block here
  std::int32_t column;                                         // first one of the block of C
  std::int32_t unit_row[kHeight];
};

// Dynamic shared memory, aligned for the swizzle: Front; the chunks of C; the stages, each kHeight
// tiles of A and then B.
struct Front {
  StageHead head[kMaxStages];
  RingBarriers<kMaxStages> barriers;
  float scale[kMaxStages][kHeight];  // of the tiles of A
};
inline constexpr int kFrontBytes = 1024;
static_assert(sizeof(Front) <= kFrontBytes);

constexpr int shared_bytes(int stage_bytes, int staging_bytes, int stages) {
  return kFrontBytes + staging_bytes + stage_bytes * stages;
}

}  // namespace spmmbench::async_bcsr
