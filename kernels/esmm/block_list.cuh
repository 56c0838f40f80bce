#pragma once
// The dense path: a CTA owns a tile of C, lists the k-indices that survive anywhere in it and
// runs an SGEMM over that list: lines of A and B by cp.async into a ring of stages, outer products
// from registers. At full density the list is simply 0..K-1. All lines of A must have been written:
// a strip of the tile may lack an index that another has.
//
//   shared memory:  ring[kStages][kStep][A's lines | B's lines]   list[kListCapacity]   its length

#include "esmm/operands.cuh"

namespace spmmbench::esmm {

template <int kWarpRows_, int kWarpCols_, int kStripsA_, int kStripsB_, int kStep_, int kStages_>
struct BlockList {
  static constexpr int kWarpRows = kWarpRows_;
  static constexpr int kWarpCols = kWarpCols_;
  static constexpr int kStripsA = kStripsA_;  // per warp
  static constexpr int kStripsB = kStripsB_;
  static constexpr int kStep = kStep_;
  static constexpr int kStages = kStages_;
  static constexpr int kWarps = kWarpRows * kWarpCols;
  static constexpr int kThreads = kWarps * 32;
  static constexpr int kTileA = kWarpRows * kStripsA;  // strips
  static constexpr int kTileB = kWarpCols * kStripsB;
  static constexpr int kRows = kTileA * kStrip;
  static constexpr int kCols = kTileB * kStrip;
  static constexpr int kLine = (kTileA + kTileB) * kStrip;            // floats per k-index
  static constexpr int kListChunks = 4;                               // chunks of K listed at once
  static constexpr int kListCapacity = kListChunks * kChunk + kStep;  // padded to a whole step
  static constexpr int kSharedBytes = (kStages * kStep * kLine + kListCapacity + 1) * 4;

  static int grid(const Operands& op) {
    return ceil_div(op.strips_a, kTileA) * ceil_div(op.strips_b, kTileB);
  }
};

// Lists the k-indices of the chunks from word `first` on that survive in the tile. A warp calls it.
template <class T>
__device__ void list_joint(const Operands& op, int strip_a, int strip_b, int first, int* list,
                           int* list_count) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  int count = 0;
  const int end = min(op.words, first + T::kListChunks * kChunkWords);
  for (int word = first; word < end; word += kChunkWords)
    count = append_set_bits(joint_word<T::kTileA, T::kTileB>(op, strip_a, strip_b, word + lane),
                            word * 32, lane, list, count);
  if (lane < T::kStep) list[count + lane] = 0;  // a short last stage fetches line 0 too
  if (lane == 0) *list_count = count;
}

// What a thread copies of a stage: pieces of 16 bytes, eight to a line of a strip. Thread t takes
// pieces t, t + kThreads, ...
template <class T>
class Copies {
  static constexpr int kOfA = T::kStep * T::kTileA * 8, kOfB = T::kStep * T::kTileB * 8;
  static_assert(kOfA % T::kThreads == 0 && kOfB % T::kThreads == 0,
                "every thread makes the same number of copies");
  static_assert(T::kThreads % (T::kTileA * 8) == 0 && T::kThreads % (T::kTileB * 8) == 0,
                "a thread stays in its strip");

 public:
  __device__ Copies(const Operands& op, int strip_a, int strip_b, float* ring) : op_(op) {
    const int own_a = thread_ / 8 % T::kTileA, own_b = thread_ / 8 % T::kTileB;
    a_source_ = a_line(op, strip_a + own_a, thread_ % 8 * 4);
    b_source_ = b_line(op, strip_b + own_b, thread_ % 8 * 4);
    a_target_ = ring + own_a * kStrip + thread_ % 8 * 4;
    b_target_ = ring + (T::kTileA + own_b) * kStrip + thread_ % 8 * 4;
  }

  // `indices`: the k-indices of the stage's lines.
  __device__ void begin(int stage, const int* indices) const {
    const int offset = stage * (T::kStep * T::kLine);
#pragma unroll
    for (int i = 0; i < kOfA / T::kThreads; ++i) {
      const int line = (thread_ + i * T::kThreads) / (T::kTileA * 8);
      copy_from_a(a_target_ + offset + line * T::kLine, a_source_, indices[line]);
    }
#pragma unroll
    for (int i = 0; i < kOfB / T::kThreads; ++i) {
      const int line = (thread_ + i * T::kThreads) / (T::kTileB * 8);
      copy_from_b(b_target_ + offset + line * T::kLine, b_source_, indices[line], op_);
    }
  }

 private:
  const Operands& op_;
  int thread_ = static_cast<int>(threadIdx.x);
  const char *a_source_, *b_source_;
  float *a_target_, *b_target_;
};

template <class T, int kMinBlocks>
__global__ void __launch_bounds__(T::kThreads, kMinBlocks) block_list(const Operands op) {
  extern __shared__ float4 shared[];
  float* ring = reinterpret_cast<float*>(shared);
  int* list = reinterpret_cast<int*>(ring + T::kStages * T::kStep * T::kLine);
  int* list_count = list + T::kListCapacity;
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warp = thread / 32;

  const int2 block = raster(static_cast<int>(blockIdx.x), ceil_div(op.strips_a, T::kTileA),
                            ceil_div(op.strips_b, T::kTileB));
  const int strip_a = block.x * T::kTileA;
  const int strip_b = block.y * T::kTileB;

  const Copies<T> copies(op, strip_a, strip_b, ring);
  Sums<T::kStripsA, T::kStripsB> sums;
  const LanePosition at = lane_position(lane);
  const int my_a = warp / T::kWarpCols * T::kStripsA;
  const int my_b = warp % T::kWarpCols * T::kStripsB;

  for (int first = 0; first < op.words; first += T::kListChunks * kChunkWords) {
    if (warp == 0) list_joint<T>(op, strip_a, strip_b, first, list, list_count);
    __syncthreads();
    const int count = *list_count;
    const int steps = ceil_div(count, T::kStep);

    auto fetch = [&](int step) {
      if (step < steps) copies.begin(step % T::kStages, list + step * T::kStep);
      __pipeline_commit();
    };

    auto multiply = [&](int step, int line) {
      Fragment<T::kStripsA, T::kStripsB> fragment;
      const float* at_line = ring + (step % T::kStages * T::kStep + line) * T::kLine;
      fragment.load(at_line + my_a * kStrip, at_line + (T::kTileA + my_b) * kStrip, at);
      sums.add_serpentine(fragment);
    };
#pragma unroll 1
    for (int s = 0; s < T::kStages - 1; ++s) fetch(s);
    const int whole = count / T::kStep;
#pragma unroll 1
    for (int step = 0; step < whole; ++step) {
      __pipeline_wait_prior(T::kStages - 2);
      __syncthreads();  // the stage is visible, and no thread still reads the one filled next
      fetch(step + T::kStages - 1);
#pragma unroll
      for (int line = 0; line < T::kStep; ++line) multiply(step, line);
    }
    if (whole < steps) {
      __pipeline_wait_prior(0);
      __syncthreads();
#pragma unroll 1
      for (int line = 0; line < count % T::kStep; ++line) multiply(whole, line);
    }
    __syncthreads();  // before the list and the ring are filled again
  }
  store_tile(op, strip_a + my_a, strip_b + my_b, at, sums);
}

}  // namespace spmmbench::esmm
