#pragma once
// The published scheme: a shared-memory SGEMM over tiles of 64 x 128 x 8, a warp per 32 x 32 of it,
// that tests pattern bytes as it walks over K and skips, in this order: the tile's loads when no
// warp needs it, a warp's share of the products, and single k-indices. A is read in place.

#include "esmm/operands.cuh"

namespace spmmbench::esmm {

struct SkipTile {
  static constexpr int kStripsA = 2;
  static constexpr int kStripsB = 4;
  static constexpr int kStep = 8;  // one pattern byte
  static constexpr int kThreads = kStripsA * kStripsB * 32;
  static constexpr int kRows = kStripsA * kStrip;
  static constexpr int kCols = kStripsB * kStrip;
  static constexpr int kJointBytes = 1024;  // k-steps whose joint bytes are in shared memory

  static int grid(const Operands& op) {
    return ceil_div(op.strips_a, kStripsA) * ceil_div(op.strips_b, kStripsB);
  }
};

// Which patterns count; an operand left out is taken as dense.
struct SkipRules {
  bool a = true;
  bool b = true;
  bool block = true;  // skip the loads of a tile that no warp needs
};

static __global__ void __launch_bounds__(SkipTile::kThreads)
    skip_tiles(const Operands op, const float* __restrict__ a, std::int64_t lda, SkipRules rules) {
  using T = SkipTile;
  __shared__ float a_tile[2][T::kStep][T::kRows + 4];  // padded: written by columns
  __shared__ float b_tile[2][T::kStep][T::kCols];
  __shared__ std::uint64_t joint[T::kJointBytes];  // byte w of an entry: warp w's joint byte

  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int tiles_b = ceil_div(op.strips_b, T::kStripsB);
  const int strip_a = static_cast<int>(blockIdx.x) / tiles_b * T::kStripsA;
  const int strip_b = static_cast<int>(blockIdx.x) % tiles_b * T::kStripsB;
  const int my_a = warp / T::kStripsB;
  const int my_b = warp % T::kStripsB;
  const int steps = ceil_div(op.k, T::kStep);

  auto pattern_byte = [&](const std::uint32_t* bits, bool counts, int strip, int strips, int step) {
    if (strip >= strips) return 0U;
    const std::uint32_t word = bits[static_cast<std::int64_t>(strip) * op.words + step / 4];
    return counts ? word >> step % 4 * 8 & 0xFFU : 0xFFU;
  };

  // A thread's share of the next tile's loads waits in registers while this tile is multiplied.
  const std::int64_t a_row = static_cast<std::int64_t>(strip_a) * kStrip + thread / 2;
  const std::int64_t b_col = static_cast<std::int64_t>(strip_b) * kStrip + thread % 32 * 4;
  const bool loads_a = thread < T::kRows * 2;
  const float4 zero = make_float4(0, 0, 0, 0);
  float4 from_a = zero;
  float4 from_b = zero;
  auto load = [&](int step) {
    const int k_a = step * T::kStep + thread % 2 * 4;
    const int k_b = step * T::kStep + thread / 32;
    from_a = loads_a && a_row < op.m && k_a < op.k
                 ? *reinterpret_cast<const float4*>(a + a_row * lda + k_a)
                 : zero;
    from_b = k_b < op.k && b_col < op.n
                 ? *reinterpret_cast<const float4*>(
                       static_cast<const float*>(op.b) +
                       static_cast<std::int64_t>(k_b) * (op.ldb_bytes / 4) + b_col)
                 : zero;
  };
  auto store = [&](int buffer) {
    if (loads_a) {
      a_tile[buffer][thread % 2 * 4 + 0][thread / 2] = from_a.x;
      a_tile[buffer][thread % 2 * 4 + 1][thread / 2] = from_a.y;
      a_tile[buffer][thread % 2 * 4 + 2][thread / 2] = from_a.z;
      a_tile[buffer][thread % 2 * 4 + 3][thread / 2] = from_a.w;
    }
    *reinterpret_cast<float4*>(&b_tile[buffer][thread / 32][thread % 32 * 4]) = from_b;
  };

  Sums<1, 1> sums;
  const LanePosition at = lane_position(thread % 32);
  for (int first = 0; first < steps; first += T::kJointBytes) {
    const int end = min(steps, first + T::kJointBytes);
    __syncthreads();  // no thread still reads the earlier joint bytes
    for (int step = first + thread; step < end; step += T::kThreads) {
      std::uint64_t all = 0;
#pragma unroll
      for (int w = 0; w < T::kStripsA * T::kStripsB; ++w) {
        const std::uint64_t byte =
            pattern_byte(op.a_bits, rules.a, strip_a + w / T::kStripsB, op.strips_a, step) &
            pattern_byte(op.b_bits, rules.b, strip_b + w % T::kStripsB, op.strips_b, step);
        all |= byte << w * 8;
      }
      joint[step - first] = all;
    }
    __syncthreads();
    auto next_needed = [&](int step) {
      while (rules.block && step < end && joint[step - first] == 0) ++step;
      return step;
    };
    int step = next_needed(first);
    if (step < end) load(step);
    for (int buffer = 0; step < end; buffer ^= 1) {
      store(buffer);
      __syncthreads();  // and no thread still reads the buffer that is stored to next
      const auto mine = static_cast<std::uint32_t>(joint[step - first] >> warp * 8) & 0xFFU;
      step = next_needed(step + 1);
      if (step < end) load(step);
      if (mine == 0) continue;
#pragma unroll
      for (int i = 0; i < T::kStep; ++i) {
        if ((mine >> i & 1) == 0) continue;
        Fragment<1, 1> fragment;
        fragment.load(&a_tile[buffer][i][my_a * kStrip], &b_tile[buffer][i][my_b * kStrip], at);
        sums.add(fragment);
      }
    }
  }
  store_tile(op, strip_a + my_a, strip_b + my_b, at, sums);
}

}  // namespace spmmbench::esmm
