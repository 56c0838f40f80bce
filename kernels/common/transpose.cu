#include "common/transpose.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "common/dependent_launch.hpp"
#include "ptx/griddepcontrol.cuh"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

constexpr int kThreadsOfTile = 256;
// Elements of a tile, a power of two: enough bytes on their way to keep memory busy.
template <class T>
constexpr int kTileOf = sizeof(T) <= 4 ? 64 * 64 : 32 * 32;
constexpr int kLeastTileSide = 8;  // a shorter one would leave much of a tile empty, or pad it much

template <class T>
struct LinesOf {
  T* data;
  std::int64_t ld;
};

// Tiles have 2^log2_lines lines of `from`. Warps read along its lines and write along those of
// `to`.
template <class T>
__global__ void __launch_bounds__(kThreadsOfTile)
    transpose_tiles(LinesOf<const T> from, LinesOf<T> to, std::int64_t lines, std::int64_t length,
                    int log2_lines, int log2_length) {
  constexpr int kPerThread = kTileOf<T> / kThreadsOfTile;
  __shared__ T tile[kTileOf<T> + kTileOf<T> / kLeastTileSide];  // a line has one element of padding
  const int padded = (1 << log2_length) + 1;
  const std::int64_t along = (length + (1 << log2_length) - 1) >> log2_length;  // tiles of a line
  const std::int64_t first_line = blockIdx.x / along << log2_lines;
  const std::int64_t first = blockIdx.x % along << log2_length;
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  T elements[kPerThread];
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const int at = i * kThreadsOfTile + static_cast<int>(threadIdx.x);
    const std::int64_t line = first_line + (at >> log2_length);
    const std::int64_t place = first + (at & ((1 << log2_length) - 1));
    elements[i] = line < lines && place < length ? from.data[line * from.ld + place] : T{};
  }
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const int at = i * kThreadsOfTile + static_cast<int>(threadIdx.x);
    tile[(at >> log2_length) * padded + (at & ((1 << log2_length) - 1))] = elements[i];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const int at = i * kThreadsOfTile + static_cast<int>(threadIdx.x);
    const int line = at & ((1 << log2_lines) - 1), place = at >> log2_lines;
    if (first_line + line < lines && first + place < length)
      to.data[(first + place) * to.ld + first_line + line] = tile[line * padded + place];
  }
}

int log2_of_side(std::int64_t extent, int most) {
  const auto covered = static_cast<std::uint64_t>(std::max<std::int64_t>(extent, kLeastTileSide));
  return std::min(static_cast<int>(std::bit_width(covered - 1)), most);
}

template <class T>
void transpose_as(const DenseView& from, const DenseView& to, bool overlap, Stream stream) {
  constexpr int kLog2Tile = std::bit_width(static_cast<unsigned>(kTileOf<T>)) - 1;
  const std::int64_t lines = from.lines(), length = from.line_length();
  if (lines == 0 || length == 0) return;
  // Square tiles, and where one extent is shorter, longer ones along the other.
  int log2_lines = log2_of_side(lines, kLog2Tile / 2);
  const int log2_length = log2_of_side(length, kLog2Tile - log2_lines);
  log2_lines = kLog2Tile - log2_length;
  const auto tiles = [](std::int64_t extent, int log2) {
    return (extent + (1 << log2) - 1) >> log2;
  };
  const dim3 grid(static_cast<unsigned>(tiles(lines, log2_lines) * tiles(length, log2_length)));
  launch_dependent(transpose_tiles<T>, grid, dim3(kThreadsOfTile), 0, stream, overlap,
                   LinesOf<const T>{static_cast<const T*>(from.data), from.ld},
                   LinesOf<T>{static_cast<T*>(to.data), to.ld}, lines, length, log2_lines,
                   log2_length);
}

}  // namespace

void transpose(const DenseView& from, const DenseView& to, bool overlap, Stream stream) {
  switch (bytes_of(from.type)) {
    case 1: return transpose_as<std::uint8_t>(from, to, overlap, stream);
    case 2: return transpose_as<std::uint16_t>(from, to, overlap, stream);
    case 4: return transpose_as<std::uint32_t>(from, to, overlap, stream);
    case 8: return transpose_as<std::uint64_t>(from, to, overlap, stream);
    default: throw Error("a type of another size");
  }
}

}  // namespace spmmbench
