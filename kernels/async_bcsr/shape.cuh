#pragma once
// What the parts of async_bcsr share: the compile-time shape of a variant, its arguments and its
// shared memory.

#include <cuda.h>

#include <cstdint>
#include <type_traits>

#include "async_bcsr/work.hpp"
#include "common/mbarrier.cuh"
#include "common/wgmma.cuh"
#include "format/bcsr_groups.hpp"
#include "spmmbench/device.hpp"

namespace spmmbench::async_bcsr {

inline constexpr int kUnitRows = BcsrGroups::kUnitRows;
inline constexpr int kLineBytes = 128;  // the swizzle's span: one step of k
inline constexpr int kTileBytes = kUnitRows * kLineBytes;
inline constexpr int kWarpgroup = 128;
inline constexpr int kMaxStages = 8;

// A DenseView for the device: element `at` of line `line` is data[line * ld + at].
struct Lines {
  void* data;
  std::int64_t lines, length, ld;
  Layout layout;
  ElementType type;

  Lines() = default;
  explicit Lines(const DenseView& v)
      : data(v.data),
        lines(v.lines()),
        length(v.line_length()),
        ld(v.ld),
        layout(v.layout),
        type(v.type) {}
};

struct Arguments {
  const BcsrStep* steps;
  const Work* work;
  const std::int32_t* work_ptr;  // persistent grid: list of each cluster; null: one each
  int stages;
  int bk;                // columns of a stored block
  const void* a_values;  // for the loader without TMA
  Lines b;
  Lines c;
};

enum class Loader { tma, cp_async };

// kHeight unit rows, one consumer warpgroup each, times kTileN columns of C per block. Clusters of
// kCluster blocks take neighbouring column tiles of one group and share A's tiles by multicast.
template <class Input_, Layout kLayoutB_, int kHeight_, int kTileN_, Loader kLoader_ = Loader::tma,
          bool kSpecialised_ = true, int kCluster_ = 1>
struct Shape {
  using Input = Input_;
  using Element = std::conditional_t<std::is_same_v<Input, wgmma::Tf32>, float, Input>;
  static constexpr Layout kLayoutB = kLayoutB_;
  static constexpr int kHeight = kHeight_;
  static constexpr int kTileN = kTileN_;
  static constexpr Loader kLoader = kLoader_;
  static constexpr bool kSpecialised = kSpecialised_;
  static constexpr int kCluster = kCluster_;

  static constexpr wgmma::Major kMajorB =
      kLayoutB == Layout::col_major ? wgmma::Major::k : wgmma::Major::mn;
  static constexpr int kStepK = kLineBytes / sizeof(Element);
  // ptxas takes an instruction only if its registers fit the kernel's cap at entry: m64n256 needs
  // 154, 512 threads enter with 128.
  static constexpr int kMmaN = kHeight == 3 ? 128 : kTileN;
  static constexpr int kMmas = kTileN / kMmaN;
  static constexpr int kTilesB = kTileN / kUnitRows;  // of 64 x 128 bytes
  static constexpr int kStageBytes = (kHeight + kTilesB) * kTileBytes;
  static constexpr int kConsumers = kHeight * kWarpgroup;
  static constexpr int kThreads = kConsumers + (kSpecialised ? kWarpgroup : 0);
  static constexpr int kLoaders = kSpecialised ? kWarpgroup : kConsumers;
  static constexpr int kBlocksPerSm = kTileN == 64 && kSpecialised ? 2 : 1;
  // 65536 registers over kBlocksPerSm * kThreads threads, moved from producer to consumers.
  static constexpr int kProducerRegisters = kBlocksPerSm == 2 ? 40 : kHeight == 3 ? 32 : 56;
  static constexpr int kConsumerRegisters = kBlocksPerSm == 2 ? 96 : kHeight == 3 ? 160 : 224;

  static_assert(kMajorB == wgmma::Major::k || sizeof(Element) == 2,
                "wgmma reads 32-bit operands K-major only");
  static_assert(kHeight <= BcsrStep::kMaxHeight);
  static_assert(kCluster == 1 || (kLoader == Loader::tma && kSpecialised));
};

// Dynamic shared memory: the stages, each kHeight tiles of A and then B, aligned for the swizzle;
// behind them the barriers. present[s]: bit r set when unit row r has a block in stage s.
struct Ring {
  char* tiles;
  std::uint64_t* full;
  std::uint64_t* empty;
  std::uint32_t* present;
  int stages;

  __device__ Ring(char* shared, int stage_bytes, int stages_)
      : tiles(shared + (-__cvta_generic_to_shared(shared) & 1023)), stages(stages_) {
    full = reinterpret_cast<std::uint64_t*>(tiles + stage_bytes * stages);
    empty = full + kMaxStages;
    present = reinterpret_cast<std::uint32_t*>(empty + kMaxStages);
  }
  static constexpr int bytes(int stage_bytes, int stages) {
    return 1024 + stage_bytes * stages + kMaxStages * 20;
  }
};

__device__ inline std::uint32_t present_mask(const BcsrStep& step) {
  std::uint32_t mask = 0;
#pragma unroll
  for (int r = 0; r < BcsrStep::kMaxHeight; ++r) mask |= (step.a_row[r] >= 0 ? 1U : 0U) << r;
  return mask;
}

}  // namespace spmmbench::async_bcsr
