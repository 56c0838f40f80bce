#pragma once
// B is packed once per launch, in the order in which the products read it, with zeros past its
// edges. One thread per word, two neighbours of k; threads side by side where B's elements are.

#include <cstdint>

#include "format/gap_streams.hpp"
#include "ptx/griddepcontrol.cuh"
#include "spmmbench/device.hpp"

namespace spmmbench::scatter_mma {

inline constexpr int kPairsOfStep = 8;  // of k in a step of 16

// Which word of B a thread packs: columns of the tile blockIdx.y, pairs of k.
struct PackedWord {
  std::int64_t column, pair;
  bool inside;

  __device__ PackedWord(const DenseView& b, std::int64_t pairs, std::int64_t columns) {
    const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    const bool by_column = b.layout == Layout::col_major;
    column = by_column ? i / pairs : i % columns;
    pair = by_column ? i % pairs : i / columns;
    inside = i < pairs * columns;
  }
  __device__ std::uint32_t load(const DenseView& b, std::int64_t columns) const {
    const auto* const from = static_cast<const std::uint16_t*>(b.data);
    const std::int64_t n = blockIdx.y * columns + column, k = pair * 2;
    if (n >= b.cols || k >= b.rows) return 0;
    if (b.layout == Layout::col_major) {
      const auto word = *reinterpret_cast<const std::uint32_t*>(from + n * b.ld + k);
      return k + 1 == b.rows ? word & 0xFFFFU : word;
    }
    const std::uint32_t low = from[k * b.ld + n];
    return k + 1 == b.rows ? low : low | static_cast<std::uint32_t>(from[(k + 1) * b.ld + n]) << 16;
  }
};

// In the order of mma's fragments: of column tile T, step s and tile j of 8 columns at
// [T][s][j][lane], two words.
__global__ void pack_b(const __grid_constant__ DenseView b, std::int64_t steps, int tiles,
                       std::uint32_t* to) {
  ptx::griddepcontrol_launch_dependents();
  const std::int64_t columns = tiles * std::int64_t{8};
  const PackedWord word(b, steps * kPairsOfStep, columns);
  if (!word.inside) return;
  ptx::griddepcontrol_wait();
  const std::int64_t step = blockIdx.y * steps + word.pair / kPairsOfStep;
  const auto t = word.pair % 4, half = word.pair % kPairsOfStep / 4;
  to[((step * tiles + word.column / 8) * 32 + word.column % 8 * 4 + t) * 2 + half] =
      word.load(b, columns);
}

}  // namespace spmmbench::scatter_mma
