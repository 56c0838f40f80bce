#pragma once
// The device side of block_swiglu: a producer warp that walks the steps of gate and then of up for
// each block of y, and two consumer warpgroups of 64 rows each, which hold the sums of both.

#include "block_swiglu/shape.cuh"
#include "common/tile_store.cuh"
#include "ptx/ex2.cuh"
#include "ptx/keep.cuh"
#include "ptx/rcp.cuh"

namespace spmmbench::block_swiglu {

// ---- Producer ----------------------------------------------------------------------------------

// One thread. The tiles arrive on `full` of the stage.
template <class S>
__device__ void load(const CUtensorMap& map_tiles, const CUtensorMap& map_x,
                     const typename S::Ring& ring, int stage, int4 step, int token) {
  char* const tiles = ring.stage(stage);
  char* const x = tiles + kHeight * kTileBytes;
  std::uint64_t* const full = ring.full(stage);
  const int tile_of[kHeight] = {step.y, step.z};
  int bytes = 0;
#pragma unroll
  for (int r = 0; r < kHeight; ++r) {
    if (tile_of[r] < 0) continue;
    const std::int32_t at[2] = {0, tile_of[r] * kUnitRows};
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tiles + r * kTileBytes,
                              &map_tiles, at, full);
    bytes += kTileBytes;
  }
  if (bytes > 0) {
    const std::int32_t at[2] = {step.x, token};
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, x, &map_x, at, full);
    bytes += S::kTilesB * kTileBytes;
  }
  mbarrier::arrive_expect(full, bytes);
}

// One warp. Lane l holds step l of 32; those after them, of this pair or the next, are being read.
template <class S>
__device__ void produce(const CUtensorMap& map_tiles, const CUtensorMap& map_x,
                        const Arguments& args, const typename S::Ring& ring, StageHead* heads) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto pair_of = [&](int turn) {
    return has_item(args, turn) ? __ldg(args.pairs + item_of(args, turn).pair)
                                : make_int4(0, 0, 0, 0);
  };
  const auto steps_of = [&](int begin, int end) {
    return begin + lane < end ? __ldg(args.steps + begin + lane) : make_int4(0, -1, -1, 0);
  };
  mbarrier::Cursor at;
  int4 pair = pair_of(0), next = pair_of(1), ahead = steps_of(pair.y, pair.w), mine = {};
  for (int turn = 0; has_item(args, turn); ++turn) {
    const int4 after_next = pair_of(turn + 2);
    const int token = item_of(args, turn).token_tile * S::kTileN;
    const bool last_item = !has_item(args, turn + 1);
    for (int s = pair.y; s < pair.w; ++s) {
      const int i = (s - pair.y) % 32;
      if (i == 0) {
        mine = ahead;
        ahead = s + 32 < pair.w ? steps_of(s + 32, pair.w) : steps_of(next.y, next.w);
      }
      const int4 step = make_int4(__shfl_sync(~0U, mine.x, i), __shfl_sync(~0U, mine.y, i),
                                  __shfl_sync(~0U, mine.z, i), 0);
      if (lane == 0) {
        ring.wait_empty(at);
        const bool last = s + 1 == pair.w;
        heads[at.stage] = {(step.y >= 0 ? 1U : 0U) | (step.z >= 0 ? 2U : 0U) |
                               (last || s + 1 == pair.z ? StageHead::kLastOfPart : 0U) |
                               (last && last_item ? StageHead::kLastItem : 0U),
                           pair.x, token};
        load<S>(map_tiles, map_x, ring, at.stage, step, token);
      }
      ring.advance(at);
    }
    pair = next;
    next = after_next;
  }
}

// ---- Consumers ---------------------------------------------------------------------------------

// u becomes g * u / (1 + exp(-g)), of two at a time with one reciprocal, since special functions
// take longer than the rest. Below -41 silu is g * 2^-60 instead of less.
__device__ inline void gate_two(float g0, float g1, float& u0, float& u1) {
  constexpr float kLog2E = 1.44269504F, kMost = 60;
  const float d0 = 1 + ptx::ex2_approx_ftz(fminf(-kLog2E * g0, kMost));
  const float d1 = 1 + ptx::ex2_approx_ftz(fminf(-kLog2E * g1, kMost));
  const float inverse = ptx::rcp_approx_ftz(d0 * d1);
  u0 *= g0 * (inverse * d1);
  u1 *= g1 * (inverse * d0);
}

// A consumer warpgroup.
template <class S>
class Consumer {
 public:
  static constexpr int kSums = S::kTileN / 2;  // of a thread

  __device__ Consumer(const CUtensorMap& map_y, const Arguments& args, const typename S::Ring& ring,
                      const StageHead* heads, char* staging)
      : map_y_(map_y),
        args_(args),
        ring_(ring),
        heads_(heads),
        number_(static_cast<int>(threadIdx.x) / kWarpgroup),
        chunks_(staging + number_ * S::kChunks * kTileBytes) {}

  __device__ void run() {
    float gate[kSums], up[kSums];
    do {
      sum(gate);
      sum(up);
#pragma unroll
      for (int i = 0; i < kSums; i += 2) gate_two(gate[i], gate[i + 1], up[i], up[i + 1]);
      store(up);
    } while (!any(flags_ & StageHead::kLastItem));
    if (threadIdx.x % kWarpgroup == 0) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }

 private:
  // A vote, so that ptxas sees that whole warps take a branch around wgmma.
  __device__ static bool any(std::uint32_t flag) { return __any_sync(~0U, flag != 0) != 0; }

  // The products of the steps of gate or of up.
  __device__ void sum(float (&sums)[kSums]) {
    const bool leads = threadIdx.x % 32 == 0;
#pragma unroll
    for (float& value : sums) value = 0;
    do {
      ring_.wait_full(at_);
      // Read by the lane that releases the stage; the shuffle has all lanes past the wait before.
      const StageHead& head = heads_[at_.stage];
      if (leads) flags_ = head.flags, row_ = head.row, token_ = head.token;
      flags_ = __shfl_sync(~0U, flags_, 0);
      if (any(flags_ >> number_ & 1)) {
        const char* const tiles = ring_.stage(at_.stage);
        async_bcsr::multiply<S>(sums, tiles + number_ * kTileBytes, tiles + kHeight * kTileBytes);
      }
      ring_.release(at_.stage);
      ring_.advance(at_);
    } while (!any(flags_ & StageHead::kLastOfPart));
    ptx::keep_in_registers(sums);
  }

  // A chunk is 64 rows of gate and up, which are columns of y, by 64 tokens.
  __device__ void store(const float (&values)[kSums]) {
    const bool leads = threadIdx.x % kWarpgroup == 0;
    const int row = __shfl_sync(~0U, row_, 0) + number_ * kUnitRows;
    const int token = __shfl_sync(~0U, token_, 0);
    constexpr int kTokens = tile_store::kColumns<false>;
#pragma unroll
    for (int first = 0; first < S::kTileN; first += kTokens) {
      if (token + first >= args_.tokens) return;
      char* const chunk = chunks_ + next_ * kTileBytes;
      next_ = next_ + 1 == S::kChunks ? 0 : next_ + 1;
      if (leads) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<S::kChunks - 1>());
      __barrier_sync_count(1 + number_, kWarpgroup);
      tile_store::write_chunk<false, Layout::col_major>(values + first / 2, chunk, args_.type);
      ptx::fence_proxy_async(ptx::space_shared);
      __barrier_sync_count(1 + number_, kWarpgroup);
      if (leads) {
        tile_store::copy_chunk<false, Layout::col_major>(map_y_, chunk, row, token + first);
        ptx::cp_async_bulk_commit_group();
      }
    }
  }

  const CUtensorMap& map_y_;
  const Arguments& args_;
  const typename S::Ring& ring_;
  const StageHead* heads_;
  int number_;
  char* chunks_;
  mbarrier::Cursor at_ = {};
  std::uint32_t flags_ = 0;
  int row_ = 0, token_ = 0, next_ = 0;
};

}  // namespace spmmbench::block_swiglu
