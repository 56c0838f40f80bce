#pragma once
// The sparse path: each warp owns a 32 x 32 tile of C, lists the k-indices that survive in it and
// multiplies over that list, with its own ring of stages in shared memory. Warps never wait for
// each other. A warp loads only what survives in its own tile, so the warps move no more bytes than
// a CTA that shares the union of their lists.
//
//   shared memory of a warp:  ring[kStages][kStep][A's line | B's line]   list[kListCapacity]

#include "esmm/operands.cuh"

namespace spmmbench::esmm {

template <int kStep_, int kStages_>
struct WarpList {
  static constexpr int kStep = kStep_;  // k-indices per stage
  static constexpr int kStages = kStages_;
  static constexpr int kWarpRows = 2;  // warps of a block: 2 x 2 tiles of C
  static constexpr int kWarpCols = 2;
  static constexpr int kWarps = kWarpRows * kWarpCols;
  static constexpr int kThreads = kWarps * 32;
  static constexpr int kRows = kWarpRows * kStrip;  // of C, per block
  static constexpr int kCols = kWarpCols * kStrip;
  static constexpr int kPair = 2 * kStrip;  // floats per k-index
  static constexpr int kStageFloats = kStep * kPair;
  static constexpr int kRingFloats = kStages * kStageFloats;
  static constexpr int kListCapacity = kChunk + 2 * kStep;  // what was left, a chunk, padding
  static constexpr int kWarpFloats = kRingFloats + kListCapacity;
  static constexpr int kSharedBytes = kWarps * kWarpFloats * 4;
  static_assert(kStep % 4 == 0 && kStep <= 32, "a warp copies four lines of a strip at once");

  static int grid(const Operands& op) {
    return ceil_div(op.strips_a, kWarpRows) * ceil_div(op.strips_b, kWarpCols);
  }
};

// The k-indices that survive in a warp's tile, listed chunk by chunk in shared memory. All lanes
// call its functions.
template <class T>
class Survivors {
 public:
  __device__ Survivors(const Operands& op, int strip_a, int strip_b, int* list)
      : op_(op), strip_a_(strip_a), strip_b_(strip_b), list_(list) {
    word_ = joint_word<1, 1>(op, strip_a, strip_b, lane_);
  }

  // Whether the list is shorter than a stage and chunks are left.
  __device__ bool want_more() const { return left() < T::kStep && chunk_ < chunks_; }
  __device__ bool any() const { return next_ < count_; }
  __device__ int left() const { return count_ - next_; }
  // Those of the next stage. A short last stage repeats the last.
  __device__ const int* next() const { return list_ + next_; }
  __device__ void take_stage() { next_ += T::kStep; }

  __device__ void refill() {
    while (want_more()) {
      const int left = count_ - next_;
      const int kept = lane_ < left ? list_[next_ + lane_] : 0;
      __syncwarp();
      if (lane_ < left) list_[lane_] = kept;
      count_ = append_set_bits(word_, chunk_ * kChunk, lane_, list_, left);
      next_ = 0;
      if (++chunk_ < chunks_)
        word_ = joint_word<1, 1>(op_, strip_a_, strip_b_, chunk_ * kChunkWords + lane_);
      __syncwarp();
      if (chunk_ == chunks_ && count_ > 0) {
        if (lane_ < T::kStep) list_[count_ + lane_] = list_[count_ - 1];
        __syncwarp();
      }
    }
  }

 private:
  const Operands& op_;
  int strip_a_, strip_b_;
  int* list_;
  int lane_ = static_cast<int>(threadIdx.x) % 32;
  int chunks_ = op_.words / kChunkWords;
  int chunk_ = 0;       // next to expand
  int next_ = 0;        // place in the list of the next stage
  int count_ = 0;       // entries in the list
  std::uint32_t word_;  // this lane's of the next chunk
};

template <class T, int kMinBlocks>
__global__ void __launch_bounds__(T::kThreads, kMinBlocks) warp_list(const Operands op) {
  extern __shared__ float4 shared[];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  float* ring = reinterpret_cast<float*>(shared) + warp * T::kWarpFloats;
  int* list = reinterpret_cast<int*>(ring + T::kRingFloats);

  const int2 block = raster(static_cast<int>(blockIdx.x), ceil_div(op.strips_a, T::kWarpRows),
                            ceil_div(op.strips_b, T::kWarpCols));
  const int strip_a = block.x * T::kWarpRows + warp / T::kWarpCols;
  const int strip_b = block.y * T::kWarpCols + warp % T::kWarpCols;
  if (strip_a >= op.strips_a || strip_b >= op.strips_b) return;
  const char* a_source = a_line(op, strip_a, lane % 8 * 4);
  const char* b_source = b_line(op, strip_b, lane % 8 * 4);

  Survivors<T> survivors(op, strip_a, strip_b, list);
  int pending = 0;  // k-indices fetched and not yet multiplied
  float* fill = ring;
  auto fetch = [&] {
    if (survivors.want_more()) survivors.refill();
    if (survivors.any()) {
      const int* at_list = survivors.next() + lane / 8;
      float* target = fill + lane / 8 * T::kPair + lane % 8 * 4;
#pragma unroll
      for (int first = 0; first < T::kStep; first += 4) {
        const int k = at_list[first];
        copy_from_a(target + first * T::kPair, a_source, k);
        copy_from_b(target + first * T::kPair + kStrip, b_source, k, op);
      }
      pending += min(T::kStep, survivors.left());
      survivors.take_stage();
      fill += T::kStageFloats;
      if (fill == ring + T::kRingFloats) fill = ring;
    }
    __pipeline_commit();
  };

  Sums<1, 1> sums;
  const LanePosition at = lane_position(lane);
#pragma unroll 1
  for (int s = 0; s < T::kStages - 1; ++s) fetch();
  const float* stage = ring;
  auto multiply = [&](int line) {
    Fragment<1, 1> fragment;
    fragment.load(stage + line * T::kPair, stage + line * T::kPair + kStrip, at);
    sums.add(fragment);
  };
#pragma unroll 1
  while (pending > 0) {
    __pipeline_wait_prior(T::kStages - 2);
    __syncwarp();  // the stage is visible, and nobody still reads the one filled next
    const int lines = min(T::kStep, pending);
    pending -= lines;
    fetch();
    if (lines == T::kStep) {
#pragma unroll
      for (int line = 0; line < T::kStep; ++line) multiply(line);
    } else {
#pragma unroll 1
      for (int line = 0; line < lines; ++line) multiply(line);
    }
    stage += T::kStageFloats;
    if (stage == ring + T::kRingFloats) stage = ring;
  }
  store_tile(op, strip_a, strip_b, at, sums);
}

}  // namespace spmmbench::esmm
