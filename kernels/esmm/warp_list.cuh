#pragma once
// The sparse path: each warp owns a tile of kStripsA x kStripsB strips of C, lists the k-indices
// that survive in it and multiplies over that list, with its own ring of stages in shared memory.
// Warps never wait for each other. Loading only what survives in its own tile, a warp moves no more
// bytes than a block that shares the union of its warps' lists.
//
//   shared memory of a warp:  ring[kStages][kStep][A lines | B lines]   list[kListCapacity]

#include "esmm/operands.cuh"

namespace spmmbench::esmm {

inline constexpr int kRasterRows = 16;  // blocks of C that share strips of B in L2

// Block `index` of a rows x cols grid, walked in bands of kRasterRows rows, column by column.
__device__ inline int2 raster(int index, int rows, int cols) {
  const int band = index / (kRasterRows * cols);
  const int height = min(kRasterRows, rows - band * kRasterRows);
  const int within = index - band * kRasterRows * cols;
  return make_int2(band * kRasterRows + within % height, within / height);
}

template <int kStripsA_, int kStripsB_, int kStep_, int kStages_>
struct WarpList {
  static constexpr int kStripsA = kStripsA_;
  static constexpr int kStripsB = kStripsB_;
  static constexpr int kStep = kStep_;  // k-indices per stage
  static constexpr int kStages = kStages_;
  static constexpr int kWarpRows = 2;  // warps of a block: 2 x 2 tiles of C
  static constexpr int kWarpCols = 2;
  static constexpr int kRows = kWarpRows * kStripsA * kStrip;  // of C, per block
  static constexpr int kCols = kWarpCols * kStripsB * kStrip;
  static constexpr int kThreads = kWarpRows * kWarpCols * 32;
  static constexpr int kLine = (kStripsA + kStripsB) * kStrip;  // floats per k-index
  static constexpr int kListCapacity = kChunk + 2 * kStep;      // what was left, a chunk, padding
  static constexpr int kWarpFloats = kStages * kStep * kLine + kListCapacity;
  static constexpr int kSharedBytes = kWarpRows * kWarpCols * kWarpFloats * 4;
  static_assert(kStep % 4 == 0 && kStep <= 32, "a warp copies four lines of a strip at once");

  static int grid(const Operands& op) {
    return ceil_div(op.strips_a, kStripsA * kWarpRows) *
           ceil_div(op.strips_b, kStripsB * kWarpCols);
  }
};

template <class T, int kMinBlocks>
__global__ void __launch_bounds__(T::kThreads, kMinBlocks) warp_list(const Operands op) {
  extern __shared__ float4 shared[];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  float* ring = reinterpret_cast<float*>(shared) + warp * T::kWarpFloats;
  int* list = reinterpret_cast<int*>(ring + T::kStages * T::kStep * T::kLine);

  const int2 block =
      raster(static_cast<int>(blockIdx.x), ceil_div(op.strips_a, T::kStripsA * T::kWarpRows),
             ceil_div(op.strips_b, T::kStripsB * T::kWarpCols));
  const int strip_a = (block.x * T::kWarpRows + warp / T::kWarpCols) * T::kStripsA;
  const int strip_b = (block.y * T::kWarpCols + warp % T::kWarpCols) * T::kStripsB;
  if (strip_a >= op.strips_a || strip_b >= op.strips_b) return;

  // Eight lanes copy a line of 128 bytes. Past the last strip or the end of B's rows the address is
  // clamped: those sums are never stored.
  const char* a_source[T::kStripsA];
  const char* b_source[T::kStripsB];
#pragma unroll
  for (int s = 0; s < T::kStripsA; ++s) {
    const std::int64_t strip = min(strip_a + s, op.strips_a - 1);
    a_source[s] = reinterpret_cast<const char*>(op.a_lines + strip * op.k * kStrip + lane % 8 * 4);
  }
#pragma unroll
  for (int t = 0; t < T::kStripsB; ++t) {
    const std::int64_t col = static_cast<std::int64_t>(strip_b + t) * kStrip + lane % 8 * 4;
    b_source[t] = reinterpret_cast<const char*>(
        op.b + min(col, static_cast<std::int64_t>(op.ldb_bytes / 4 - 4)));
  }

  const int chunks = op.words / kChunkWords;
  int chunk = 0;    // next to expand
  int next = 0;     // list position of the next stage
  int count = 0;    // entries in the list
  int pending = 0;  // k-indices fetched and not yet multiplied
  float* fill = ring;
  std::uint32_t word = joint_word<T::kStripsA, T::kStripsB>(op, strip_a, strip_b, lane);

  auto refill = [&] {
    while (count - next < T::kStep && chunk < chunks) {
      const int left = count - next;
      const int kept = lane < left ? list[next + lane] : 0;
      __syncwarp();
      if (lane < left) list[lane] = kept;
      count = append_set_bits(word, chunk * kChunk, lane, list, left);
      if (lane < T::kStep) list[count + lane] = 0;  // a short last stage fetches line 0 too
      next = 0;
      if (++chunk < chunks) {
        word =
            joint_word<T::kStripsA, T::kStripsB>(op, strip_a, strip_b, chunk * kChunkWords + lane);
      }
      __syncwarp();
    }
  };
  auto fetch = [&] {
    if (count - next < T::kStep && chunk < chunks) refill();
    if (next < count) {
      const int* at_list = list + next + lane / 8;
      float* target = fill + lane / 8 * T::kLine + lane % 8 * 4;
#pragma unroll
      for (int first = 0; first < T::kStep; first += 4) {
        const auto k = static_cast<unsigned>(at_list[first]);
#pragma unroll
        for (int s = 0; s < T::kStripsA; ++s) {
          __pipeline_memcpy_async(target + first * T::kLine + s * kStrip,
                                  a_source[s] + static_cast<std::uint64_t>(k) * (kStrip * 4U), 16);
        }
#pragma unroll
        for (int t = 0; t < T::kStripsB; ++t) {
          __pipeline_memcpy_async(target + first * T::kLine + (T::kStripsA + t) * kStrip,
                                  b_source[t] + static_cast<std::uint64_t>(k) * op.ldb_bytes, 16);
        }
      }
      pending += min(T::kStep, count - next);
      next += T::kStep;
      fill += T::kStep * T::kLine;
      if (fill == ring + T::kStages * T::kStep * T::kLine) fill = ring;
    }
    __pipeline_commit();
  };

  Sums<T::kStripsA, T::kStripsB> sums;
  const LanePosition at = lane_position(lane);
#pragma unroll 1
  for (int s = 0; s < T::kStages - 1; ++s) fetch();
  const float* stage = ring;
#pragma unroll 1
  while (pending > 0) {
    __pipeline_wait_prior(T::kStages - 2);
    __syncwarp();  // the stage is visible, and nobody still reads the one filled next
    const int lines = min(T::kStep, pending);
    pending -= lines;
    fetch();
    auto multiply = [&](int line) {
      Fragment<T::kStripsA, T::kStripsB> fragment;
      const float* at_line = stage + line * T::kLine;
      fragment.load(at_line, at_line + T::kStripsA * kStrip, at);
      sums.add(fragment);
    };
    if (lines == T::kStep) {
#pragma unroll
      for (int line = 0; line < T::kStep; ++line) multiply(line);
    } else {
#pragma unroll 1
      for (int line = 0; line < lines; ++line) multiply(line);
    }
    stage += T::kStep * T::kLine;
    if (stage == ring + T::kStages * T::kStep * T::kLine) stage = ring;
  }
  store_tile(op, strip_a, strip_b, at, sums);
}

}  // namespace spmmbench::esmm
