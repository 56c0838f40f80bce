#pragma once
// A consumer of block_attention: a warpgroup with 64 queries of a head. While the tensor cores
// multiply the weights of a step by its values, it makes the weights of the next step from that
// step's scores. While one consumer does so, the products of the other keep the tensor cores busy.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "block_attention/shape.cuh"
#include "ptx/barrier_cta.cuh"
#include "ptx/ex2.cuh"
#include "ptx/keep.cuh"
#include "ptx/wgmma.cuh"

namespace spmmbench::block_attention {

inline constexpr int kScores = kStepKeys / 2;   // of a thread: of two rows, 8 apart
inline constexpr int kOutputs = kHeadSize / 2;  // of a thread, the same rows
inline constexpr int kWeights = kStepKeys / 4;  // pairs of 16 bits
inline constexpr int kRows = 2;
inline constexpr int kMmaKeys = 16;
inline constexpr int kMmaBytes = 32;  // of a head's vector in one instruction
inline constexpr int kGroupBytes = 8 * kLineBytes;
// Powers of 2 are taken of scores less a bound of their row, which follows the row's largest score
// when that is above it by more than this: weights up to 2^8 lose nothing in 16 bits.
inline constexpr float kSlack = 8;

__device__ inline std::uint32_t pack(float low, float high, const __half*) {
  const __half2 both = __floats2half2_rn(low, high);
  return reinterpret_cast<const std::uint32_t&>(both);
}
__device__ inline std::uint32_t pack(float low, float high, const __nv_bfloat16*) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const std::uint32_t&>(both);
}

// Enqueues scores = queries * keys^T.
template <class Element>
__device__ void multiply_keys(float (&scores)[kScores], const char* queries, const char* keys) {
  const std::uint64_t a = ptx::wgmma_descriptor(queries, 0, kGroupBytes);
  const std::uint64_t b = ptx::wgmma_descriptor(keys, 0, kGroupBytes);
  ptx::wgmma_fence();
#pragma unroll
  for (int i = 0; i < kPanels * kLineBytes / kMmaBytes; ++i) {
    const int panel = i * kMmaBytes / kLineBytes, at = i * kMmaBytes % kLineBytes;
    ptx::wgmma_mma_async<Element, ptx::Major::k, kStepKeys>(
        scores, ptx::wgmma_descriptor_advance(a, panel * kTilePanelBytes + at),
        ptx::wgmma_descriptor_advance(b, panel * kStepPanelBytes + at), i > 0);
  }
  ptx::wgmma_commit_group();
}
// Enqueues out += weights * values.
template <class Element>
__device__ void multiply_values(float (&out)[kOutputs], const std::uint32_t (&weights)[kWeights],
                                const char* values) {
  const std::uint64_t b = ptx::wgmma_descriptor(values, kStepPanelBytes, kGroupBytes);
  ptx::wgmma_fence();
#pragma unroll
  for (int i = 0; i < kStepKeys / kMmaKeys; ++i)
    ptx::wgmma_mma_async<Element, ptx::Major::mn, kHeadSize>(
        out, weights[4 * i], weights[4 * i + 1], weights[4 * i + 2], weights[4 * i + 3],
        ptx::wgmma_descriptor_advance(b, i * kMmaKeys * kLineBytes));
  ptx::wgmma_commit_group();
}

// The two rows of a thread: bound and sum of the thread's weights.
struct Softmax {
  float bound[kRows], sum[kRows];
};

// The row that element i of an accumulator belongs to.
__device__ constexpr int row_of(int i) { return i / 2 % kRows; }

// The largest score of each row, over the four threads that have it.
__device__ inline void largest(const float (&scores)[kScores], float (&top)[kRows]) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) top[r] = scores[2 * r];
#pragma unroll
  for (int i = 0; i < kScores; ++i) top[row_of(i)] = fmaxf(top[row_of(i)], scores[i]);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    top[r] = fmaxf(top[r], __shfl_xor_sync(~0U, top[r], 1));
    top[r] = fmaxf(top[r], __shfl_xor_sync(~0U, top[r], 2));
  }
}
// Scores become weights.
__device__ inline void weigh(float (&scores)[kScores], float scale, Softmax& rows) {
#pragma unroll
  for (int i = 0; i < kScores; ++i) {
    scores[i] = ptx::ex2_approx_ftz(__fmaf_rn(scores[i], scale, -rows.bound[row_of(i)]));
    rows.sum[row_of(i)] += scores[i];
  }
}
// Rows without weights, under the bounds of the first scores.
__device__ __forceinline__ void begin_rows(const float (&top)[kRows], float scale, Softmax& rows) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    rows.bound[r] = top[r] * scale;
    rows.sum[r] = 0;
  }
}
// As the A operand of the next product: the layouts of an accumulator's pairs of 8 columns and of
// A's fragment are the same.
template <class Element>
__device__ void pack_weights(const float (&scores)[kScores], std::uint32_t (&weights)[kWeights]) {
#pragma unroll
  for (int i = 0; i < kWeights; ++i)
    weights[i] = pack(scores[2 * i], scores[2 * i + 1], static_cast<const Element*>(nullptr));
}
// Scores of keys later than the query, in the step of the tiles `keys`, become minus infinity.
__device__ inline void mask(float (&scores)[kScores], const int (&keys)[kStepTiles], int queries) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x % kWarpgroup / 32;
  const int row = queries * kTile + warp * 16 + lane / 4;
#pragma unroll
  for (int i = 0; i < kScores; ++i) {
    const int tile = i / 4 * 8 / kTile;
    const int key = keys[tile] * kTile + i / 4 * 8 % kTile + lane % 4 * 2 + i % 2;
    if (key > row + row_of(i) * 8) scores[i] = -INFINITY;
  }
}

// Four threads with a row exchange 4 words each of 4 tiles of columns: each ends with one tile.
__device__ inline uint4 gather(const std::uint32_t (&w)[4]) {
  const bool odd = threadIdx.x % 2 != 0, high = threadIdx.x % 4 >= 2;
  const std::uint32_t low_other = __shfl_xor_sync(~0U, odd ? w[0] : w[1], 1);
  const std::uint32_t high_other = __shfl_xor_sync(~0U, odd ? w[2] : w[3], 1);
  const std::uint32_t low[2] = {odd ? low_other : w[0], odd ? w[1] : low_other};
  const std::uint32_t upper[2] = {odd ? high_other : w[2], odd ? w[3] : high_other};
  const std::uint32_t first = __shfl_xor_sync(~0U, high ? low[0] : upper[0], 2);
  const std::uint32_t second = __shfl_xor_sync(~0U, high ? low[1] : upper[1], 2);
  return high ? make_uint4(first, second, upper[0], upper[1])
              : make_uint4(low[0], low[1], first, second);
}

template <class Element>
__device__ void store(const float (&out)[kOutputs], const Softmax& rows, const Arguments& args,
                      const Slot& slot) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x % kWarpgroup / 32;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    float sum = rows.sum[r];
    sum += __shfl_xor_sync(~0U, sum, 1);
    sum += __shfl_xor_sync(~0U, sum, 2);
    const float inverse = 1.0F / sum;
    const std::int64_t token = slot.tile * kTile + warp * 16 + lane / 4 + 8 * r;
    Element* const to = static_cast<Element*>(args.out) + token * args.out_token +
                        slot.head * args.out_head + lane % 4 * 8;
#pragma unroll
    for (int i = 0; i < kOutputs; i += 16) {
      std::uint32_t words[4];
#pragma unroll
      for (int j = 0; j < 4; ++j)
        words[j] = pack(out[i + 4 * j + 2 * r] * inverse, out[i + 4 * j + 2 * r + 1] * inverse,
                        static_cast<const Element*>(nullptr));
      *reinterpret_cast<uint4*>(to + i * 2) = gather(words);
    }
  }
}

// Consumers of one list take turns in giving the tensor cores work: barrier 1 + c is c's.
struct Turns {
  int consumer;
  static constexpr int kThreadsOfBoth = kConsumers * kWarpgroup;

  __device__ void begin() const {
    if (consumer == 1) pass();
  }
  __device__ void wait() const { ptx::barrier_cta_sync(1 + consumer, kThreadsOfBoth); }
  __device__ void pass() const { ptx::barrier_cta_arrive(2 - consumer, kThreadsOfBoth); }
};

// Votes decide the branches around wgmma, as in async_bcsr/device.cuh.
__device__ inline bool all_agree(bool condition) { return __any_sync(~0U, condition) != 0; }

// Where scores are far above the bound of any row of the warp, bounds become the largest scores.
// `top`: these, to be scaled. `factor`: what sums and outputs so far are then to be multiplied by.
__device__ __forceinline__ bool raise_bounds(float (&top)[kRows], float scale, Softmax& rows,
                                             float (&factor)[kRows]) {
  bool grows = false;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    top[r] *= scale;
    grows |= top[r] > rows.bound[r] + kSlack;
  }
  grows = all_agree(grows);
  if (grows)
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float bound = fmaxf(rows.bound[r], top[r]);
      factor[r] = ptx::ex2_approx_ftz(rows.bound[r] - bound);
      rows.bound[r] = bound;
      rows.sum[r] *= factor[r];
    }
  return grows;
}

// A consumer: where it is in the ring, and its accumulators.
template <class Element, int kBlockTiles>
class Consumer {
 public:
  __device__ Consumer(const Arguments& args, const Ring& ring, Front& front, char* queries)
      : args_(args),
        ring_(ring),
        front_(front),
        c_(static_cast<int>(threadIdx.x) / kWarpgroup),
        turns_{c_},
        queries_(queries + c_ * kQueryBytes) {
    turns_.begin();
  }

  __device__ __forceinline__ void run(const Item& item) {
    const Slot slot = c_ == 0 ? item.slots[0] : item.slots[1];
    const int steps = steps_of<kBlockTiles>(slot.count);
    others_ = item.shared
                  ? 0
                  : steps_of<kBlockTiles>(item.slots[0].count + item.slots[1].count - slot.count);
    if (!all_agree(max(steps, others_) > 0)) return;
    mbarrier::wait(&front_.queries_full, parity_);
    parity_ ^= 1;
    int step = 1;
    if (all_agree(steps > 0)) {
      Softmax rows;
      first_step(slot, rows);
      for (; all_agree(step < steps); ++step) next_step(step, steps, item.shared, rows);
      free_queries();
      last_values(step);
      store<Element>(out_, rows, args_, slot);
      ++step;
    } else {
      free_queries();
      skip(0);
    }
    // What is left of the other consumer's list.
    for (; all_agree(step <= others_); ++step) {
      skip(step);
      skip(step - 1);
    }
  }

 private:
  // The stage of the next keys or values, when they are there.
  __device__ __forceinline__ int take() {
    ring_.wait_full(at_);
    const int stage = at_.stage;
    ring_.advance(at_);
    return stage;
  }

  // Passes over what the other consumer takes of a step.
  __device__ __forceinline__ void skip(int step) {
    if constexpr (kBlockTiles == 1)
      if (all_agree(step < others_)) ring_.release(take());
  }
  // ... where those stages come before this consumer's, or behind.
  __device__ __forceinline__ void skip_before(int step) {
    if (c_ == 1) skip(step);
  }
  __device__ __forceinline__ void skip_behind(int step) {
    if (c_ == 0) skip(step);
  }

  __device__ __forceinline__ void free_queries() {
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(&front_.queries_empty);
  }

  // The weights of the first step, which has the keys nearest to the queries.
  __device__ __forceinline__ void first_step(const Slot& slot, Softmax& rows) {
    float top[kRows];
    skip_before(0);
    const int stage = take();
    multiply_keys<Element>(scores_, queries_, ring_.stage(stage));
    skip_behind(0);
    ptx::wgmma_wait_group<0>();
    ptx::keep_in_registers(scores_);
    ring_.release(stage);
    mask(scores_,
         {key_tile<kBlockTiles>(args_, slot, 0, 0), key_tile<kBlockTiles>(args_, slot, 0, 1)},
         slot.tile);
    largest(scores_, top);
    begin_rows(top, args_.scale, rows);
    weigh(scores_, args_.scale, rows);
    pack_weights<Element>(scores_, weights_);
#pragma unroll
    for (float& value : out_) value = 0;
  }

  // The values of the step before, and the weights of this one.
  __device__ __forceinline__ void next_step(int step, int steps, bool shared, Softmax& rows) {
    skip_before(step);
    const int keys = take();
    if (shared) turns_.wait();
    ptx::keep_in_registers(out_);
    multiply_keys<Element>(scores_, queries_, ring_.stage(keys));
    skip_behind(step);
    skip_before(step - 1);
    const int values = take();
    multiply_values<Element>(out_, weights_, ring_.stage(values));
    if (shared) turns_.pass();
    skip_behind(step - 1);
    ptx::wgmma_wait_group<1>();
    ptx::keep_in_registers(scores_);
    ring_.release(keys);
    float top[kRows], factor[kRows];
    largest(scores_, top);
    const bool grows = raise_bounds(top, args_.scale, rows, factor);
    weigh(scores_, args_.scale, rows);
    ptx::keep_in_registers(scores_);
    // A branch here keeps the compiler from moving the wait for the values above the powers.
    if (all_agree(step + 1 < steps)) ring_.wait_full(at_);
    ptx::wgmma_wait_group<0>();
    ptx::keep_in_registers(out_);
#pragma unroll
    for (std::uint32_t& w : weights_) ptx::keep_in_register(w);
    ring_.release(values);
    if (grows)
#pragma unroll
      for (int i = 0; i < kOutputs; ++i) out_[i] *= factor[row_of(i)];
    pack_weights<Element>(scores_, weights_);
  }

  // The values of the last step, in round `steps`.
  __device__ __forceinline__ void last_values(int steps) {
    skip_before(steps), skip_behind(steps);
    skip_before(steps - 1);
    const int stage = take();
    ptx::keep_in_registers(out_);
    multiply_values<Element>(out_, weights_, ring_.stage(stage));
    skip_behind(steps - 1);
    ptx::wgmma_wait_group<0>();
    ptx::keep_in_registers(out_);
    ring_.release(stage);
  }

  const Arguments& args_;
  const Ring& ring_;
  Front& front_;
  const int c_;  // which consumer this is
  const Turns turns_;
  char* const queries_;  // its own
  mbarrier::Cursor at_;
  std::uint32_t parity_ = 0;  // of queries_full
  int others_ = 0;            // steps of the other consumer's list, if it has one of its own
  float scores_[kScores] = {}, out_[kOutputs];
  std::uint32_t weights_[kWeights];
};

template <class Element, int kBlockTiles>
__device__ void consume(const Arguments& args, const Ring& ring, Front& front, char* queries) {
  Consumer<Element, kBlockTiles> consumer(args, ring, front, queries);
  for_each_item<kBlockTiles>(args, [&](const Item& item) { consumer.run(item); });
}

}  // namespace spmmbench::block_attention
