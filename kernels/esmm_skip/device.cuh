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

// From one line of A's tile to the next, in floats: padded, since it is written by columns.
constexpr int kLineOfA = SkipTile::kRows + 4;

// Which patterns count; an operand left out is taken as dense.
struct SkipRules {
  bool a = true;
  bool b = true;
  bool block = true;  // skip the loads of a tile that no warp needs
};

// Which k-indices of a step survive in a strip, a bit each; all where the pattern does not count.
__device__ inline std::uint32_t pattern_byte(const Operands& op, const std::uint32_t* bits,
                                             bool counts, int strip, int strips, int step) {
  if (strip >= strips) return 0U;
  const std::uint32_t word = bits[static_cast<std::int64_t>(strip) * op.words + step / 4];
  return counts ? word >> step % 4 * 8 & 0xFFU : 0xFFU;
}

// Which k-indices of a step each warp of a CTA needs: byte w is that of warp w.
__device__ inline std::uint64_t joint_bytes(const Operands& op, const SkipRules& rules, int strip_a,
                                            int strip_b, int step) {
  using T = SkipTile;
  std::uint64_t all = 0;
#pragma unroll
  for (int w = 0; w < T::kStripsA * T::kStripsB; ++w) {
    const std::uint64_t byte =
        pattern_byte(op, op.a_bits, rules.a, strip_a + w / T::kStripsB, op.strips_a, step) &
        pattern_byte(op, op.b_bits, rules.b, strip_b + w % T::kStripsB, op.strips_b, step);
    all |= byte << w * 8;
  }
  return all;
}

// A thread's share of the loads of a tile, which waits in registers while the tile before it is
// multiplied.
class TileLoads {
  using T = SkipTile;

 public:
  __device__ TileLoads(const Operands& op, const float* __restrict__ a, std::int64_t lda,
                       int strip_a, int strip_b)
      : op_(op),
        a_(a),
        lda_(lda),
        a_row_(static_cast<std::int64_t>(strip_a) * kStrip + thread_ / 2),
        b_col_(static_cast<std::int64_t>(strip_b) * kStrip + thread_ % 32 * 4) {}

  __device__ void load(int step) {
    const float4 zero = make_float4(0, 0, 0, 0);
    const int k_a = step * T::kStep + thread_ % 2 * 4;
    const int k_b = step * T::kStep + thread_ / 32;
    from_a_ = loads_a_ && a_row_ < op_.m && k_a < op_.k
                  ? *reinterpret_cast<const float4*>(a_ + a_row_ * lda_ + k_a)
                  : zero;
    from_b_ = k_b < op_.k && b_col_ < op_.n
                  ? *reinterpret_cast<const float4*>(
                        static_cast<const float*>(op_.b) +
                        static_cast<std::int64_t>(k_b) * (op_.ldb_bytes / 4) + b_col_)
                  : zero;
  }

  __device__ void store(float (&a_tile)[T::kStep][kLineOfA],
                        float (&b_tile)[T::kStep][T::kCols]) const {
    if (loads_a_) {
      a_tile[thread_ % 2 * 4 + 0][thread_ / 2] = from_a_.x;
      a_tile[thread_ % 2 * 4 + 1][thread_ / 2] = from_a_.y;
      a_tile[thread_ % 2 * 4 + 2][thread_ / 2] = from_a_.z;
      a_tile[thread_ % 2 * 4 + 3][thread_ / 2] = from_a_.w;
    }
    *reinterpret_cast<float4*>(&b_tile[thread_ / 32][thread_ % 32 * 4]) = from_b_;
  }

 private:
  const Operands& op_;
  const float* __restrict__ a_;
  std::int64_t lda_;
  int thread_ = static_cast<int>(threadIdx.x);
  bool loads_a_ = thread_ < T::kRows * 2;
  std::int64_t a_row_, b_col_;
  float4 from_a_ = make_float4(0, 0, 0, 0), from_b_ = make_float4(0, 0, 0, 0);
};

static __global__ void __launch_bounds__(SkipTile::kThreads)
    skip_tiles(const Operands op, const float* __restrict__ a, std::int64_t lda, SkipRules rules) {
  using T = SkipTile;
  __shared__ float a_tile[2][T::kStep][kLineOfA];
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

  TileLoads loads(op, a, lda, strip_a, strip_b);
  Sums<1, 1> sums;
  const LanePosition at = lane_position(thread % 32);
  for (int first = 0; first < steps; first += T::kJointBytes) {
    const int end = min(steps, first + T::kJointBytes);
    __syncthreads();  // no thread still reads the earlier joint bytes
    for (int step = first + thread; step < end; step += T::kThreads) {
      joint[step - first] = joint_bytes(op, rules, strip_a, strip_b, step);
    }
    __syncthreads();
    auto next_needed = [&](int step) {
      while (rules.block && step < end && joint[step - first] == 0) ++step;
      return step;
    };
    int step = next_needed(first);
    if (step < end) loads.load(step);
    for (int buffer = 0; step < end; buffer ^= 1) {
      loads.store(a_tile[buffer], b_tile[buffer]);
      __syncthreads();  // and no thread still reads the buffer that is stored to next
      const auto mine = static_cast<std::uint32_t>(joint[step - first] >> warp * 8) & 0xFFU;
      step = next_needed(step + 1);
      if (step < end) loads.load(step);
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
