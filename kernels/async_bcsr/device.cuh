#pragma once
// The device side of async_bcsr: blocks of C, one after the other, by producers that fill a ring of
// stages and consumer warpgroups that multiply from it.
//
//   producer warp(group)            ring of stages            consumer warpgroup r = 0, 1
//   for each step of each block:    +----+---+---+-------+      for each stage: wait full
//     wait empty                    |head|A 0|A 1|   B   |        unit row r has a block: wgmma
//     A tiles that exist, B tile -> +----+---+---+-------+        release the stage
//     arrive on full                         ...                  last step: store 64 x kTileN of C
//
// The heads of the stages tell the consumers all that they need of the blocks of C. Without
// specialisation the consumers are the producers as well: after each multiplication they issue the
// load of a later step.

#include "async_bcsr/load.cuh"
#include "async_bcsr/shape.cuh"
#include "async_bcsr/store.cuh"
#include "ptx/cuda_ptx.cuh"
#include "ptx/griddepcontrol.cuh"
#include "ptx/keep.cuh"

namespace spmmbench::async_bcsr {

// The steps of the blocks of C that one cluster computes, in order, as one warp sees them. Lane l
// holds step l of 32; the 32 after them, which may be those of the next block, are being read.
template <class S>
class Walk {
 public:
  __device__ Walk(const Arguments& args, int cluster, std::uint32_t rank)
      : args_(args),
        steps_(reinterpret_cast<const int4*>(args.steps)),
        at_(args.work + (args.work_ptr == nullptr ? cluster : args.work_ptr[cluster])),
        last_(args.work + (args.work_ptr == nullptr ? cluster + 1 : args.work_ptr[cluster + 1])),
        rank_(rank) {
    read_work();
    read_steps(next_.begin, next_.end);
  }
  // False behind the last.
  __device__ bool next(Step& step) {
    if (at_step_ == work_.end) {
      if (at_ == last_) return false;
      work_ = next_;
      at_step_ = work_.begin;
      ++at_;
      read_work();
    }
    const int i = (at_step_ - work_.begin) % 32;
    if (i == 0) {
      mine_ = ahead_;
      if (at_step_ + 32 < work_.end) read_steps(at_step_ + 32, work_.end);
      else read_steps(next_.begin, next_.end);
      if constexpr (S::kBlockScales) my_scale_ = make_float2(scale_of(0), scale_of(1));
    }
    ++at_step_;
    step.k = __shfl_sync(~0U, mine_.x, i);
    step.a_row[0] = __shfl_sync(~0U, mine_.y, i);
    step.a_row[1] = __shfl_sync(~0U, mine_.z, i);
    step.a_column = __shfl_sync(~0U, mine_.w, i);
    if constexpr (S::kBlockScales) {
      step.scale[0] = __shfl_sync(~0U, my_scale_.x, i);
      step.scale[1] = __shfl_sync(~0U, my_scale_.y, i);
    }
    const bool last = at_step_ == work_.end;
    step.head.flags = (step.a_row[0] >= 0 ? 1U : 0U) | (step.a_row[1] >= 0 ? 2U : 0U) |
                      (last ? StageHead::kLastStep : 0U) |
                      (last && at_ == last_ ? StageHead::kLastBlock : 0U);
    step.head.column = (work_.n_tile * S::kCluster + static_cast<int>(rank_)) * S::kTileN;
    step.head.unit_row[0] = work_.unit_row[0];
    step.head.unit_row[1] = work_.unit_row[1];
    return true;
  }

 private:
  __device__ void read_work() {
    if (at_ == last_) {
      next_.begin = next_.end = 0;
      return;
    }
    next_.n_tile = __ldg(&at_->n_tile);
    next_.begin = __ldg(&at_->begin);
    next_.end = __ldg(&at_->end);
    next_.unit_row[0] = __ldg(at_->unit_row);
    next_.unit_row[1] = __ldg(at_->unit_row + 1);
  }
  __device__ void read_steps(int begin, int end) {
    const int step = begin + static_cast<int>(threadIdx.x) % 32;
    ahead_ = step < end ? __ldg(steps_ + step) : make_int4(0, -1, -1, 0);
  }
  // The scale of the block of unit row `r` in my step; 0 if the step lacks that row.
  __device__ float scale_of(int r) const {
    constexpr int kUnitRowsPerBlock = kScaledBlock / kUnitRows;
    if ((r == 0 ? mine_.y : mine_.z) < 0) return 0;
    return __ldg(args_.block_scales + work_.unit_row[r] / kUnitRowsPerBlock * args_.scale_line +
                 mine_.x / static_cast<int>(kScaledBlock));
  }

  const Arguments& args_;
  const int4* steps_;
  const Work *at_, *last_;  // at_: the block of next_
  std::uint32_t rank_;
  Work work_{}, next_{};
  int at_step_ = 0;
  int4 mine_{}, ahead_{};
  float2 my_scale_{};
};

// The state of the loading side, in the threads that load.
template <class S>
struct Producer {
  const CUtensorMap& map_a;
  const CUtensorMap& map_b;
  const Arguments& args;
  const typename S::Ring& ring;
  Front& front;
  std::uint32_t rank;  // in the cluster
  int thread;          // among the loaders
  Walk<S> walk;
  mbarrier::Cursor at = {};
  int unpublished = 0;  // cp.async: groups committed whose arrival on `full` is due
  mbarrier::Cursor publish_at = {};

  // False behind the last step.
  __device__ bool load_next() {
    Step step;
    if (!walk.next(step)) return false;
    if constexpr (S::kLoader == Loader::tma) {
      if (thread == 0) {
        ring.wait_empty(at);
        load_tma<S>(map_a, map_b, args, ring, front, at.stage, step, rank);
      }
    } else {
      ring.wait_empty(at);
      load_cp_async<S>(args, ring.stage(at.stage), front.head[at.stage], step, thread);
      __pipeline_commit();
      ++unpublished;
    }
    ring.advance(at);
    return true;
  }
  // cp.async: makes the oldest group in flight visible to wgmma.
  __device__ void publish() {
    if constexpr (S::kLoader == Loader::cp_async) {
      if (unpublished == 0) return;
      wait_groups(--unpublished);
      ring.publish(publish_at);
      ring.advance(publish_at);
    }
  }

 private:
  __device__ static void wait_groups(int in_flight) {
    switch (in_flight) {
      case 0: __pipeline_wait_prior(0); break;
      case 1: __pipeline_wait_prior(1); break;
      case 2: __pipeline_wait_prior(2); break;
      default: __pipeline_wait_prior(3); break;
    }
  }
};

// One step of one consumer: 64 x kTileN += (64 x 128 bytes) * (128 bytes x kTileN). Waits for the
// result. A wgmma group in flight during the next step would gain less than the stage that it holds
// loses: loads are the limit, and the other warpgroup keeps the tensor cores busy.
template <class S>
__device__ void multiply(float (&acc)[S::kTileN / 2], const char* tile_a, const char* tile_b) {
  constexpr int kGroup = 8 * kLineBytes;
  constexpr int kAdvanceB = S::kMajorB == ptx::Major::k
                                ? kMmaBytes
                                : kMmaBytes / sizeof(typename S::Element) * kLineBytes;
  const std::uint64_t a = ptx::wgmma_descriptor(tile_a, 0, kGroup);
  const std::uint64_t b = ptx::wgmma_descriptor(tile_b, kTileBytes, kGroup);
  ptx::wgmma_fence();
#pragma unroll
  for (int i = 0; i < kLineBytes / kMmaBytes; ++i)
    ptx::wgmma_mma_async<typename S::Input, S::kMajorB, S::kTileN>(
        acc, ptx::wgmma_descriptor_advance(a, i * kMmaBytes),
        ptx::wgmma_descriptor_advance(b, i * kAdvanceB), 1);
  ptx::wgmma_commit_group();
  ptx::wgmma_wait_group<0>();
}

// acc += part, from accumulator `first` on.
template <class S>
__device__ void add(float (&acc)[S::kTileN / 2], const float (&part)[S::kPromotedN / 2],
                    int first) {
#pragma unroll
  for (int i = 0; i < S::kPromotedN / 2; ++i) acc[first + i] += part[i];
}

// The same times the scales: `of_a` of the tile of A, `of_b` of the columns of `part`. A thread has
// two columns out of eight, of two rows each.
template <class S>
__device__ void add_scaled(float (&acc)[S::kTileN / 2], const float (&part)[S::kPromotedN / 2],
                           int first, float of_a, const float* of_b) {
  const auto* const mine = reinterpret_cast<const float2*>(of_b) + threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < S::kPromotedN / 2; i += 4) {
    const float2 scale = mine[i];
    const float left = of_a * scale.x, right = of_a * scale.y;
    acc[first + i] = fmaf(part[i], left, acc[first + i]);
    acc[first + i + 1] = fmaf(part[i + 1], right, acc[first + i + 1]);
    acc[first + i + 2] = fmaf(part[i + 2], left, acc[first + i + 2]);
    acc[first + i + 3] = fmaf(part[i + 3], right, acc[first + i + 3]);
  }
}

// The same with promoted sums. `part` holds the sums of some columns of one step. `scale` is that
// of the tile of A; those of B lie behind its tile.
template <class S>
__device__ void multiply_and_promote(float (&acc)[S::kTileN / 2], float (&part)[S::kPromotedN / 2],
                                     const char* tile_a, const char* tile_b,
                                     [[maybe_unused]] float scale) {
  constexpr int kGroup = 8 * kLineBytes;
  const std::uint64_t a = ptx::wgmma_descriptor(tile_a, 0, kGroup);
#pragma unroll
  for (int first = 0; first < S::kTileN; first += S::kPromotedN) {
    const std::uint64_t b = ptx::wgmma_descriptor(tile_b + first * kLineBytes, 0, kGroup);
    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < kLineBytes / kMmaBytes; ++i)
      ptx::wgmma_mma_async<typename S::Input, S::kMajorB, S::kPromotedN>(
          part, ptx::wgmma_descriptor_advance(a, i * kMmaBytes),
          ptx::wgmma_descriptor_advance(b, i * kMmaBytes), i > 0 ? 1 : 0);
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<0>();
    ptx::keep_in_registers(part);
    if constexpr (S::kBlockScales)
      add_scaled<S>(acc, part, first / 2, scale,
                    reinterpret_cast<const float*>(tile_b + S::kTilesB * kTileBytes) + first);
    else add<S>(acc, part, first / 2);
  }
  if constexpr (S::kBlockScales) __syncwarp();  // one lane releases the scales for all
}

// `producer`: null when producers are warps of their own. Votes decide the branches around the
// wgmmas: where ptxas cannot see that a whole warp takes the same branch, it copies accumulators
// around the branches and serialises the wgmmas.
template <class S>
__device__ void consume(const CUtensorMap& map_c, const Arguments& args,
                        const typename S::Ring& ring, const Front& front, char* staging,
                        int consumer, [[maybe_unused]] Producer<S>* producer) {
  const auto any = [](std::uint32_t flag) { return __any_sync(~0U, flag != 0) != 0; };
  float acc[S::kTileN / 2];
  [[maybe_unused]] float part[S::kPromotedN / 2] = {};
  Store<S> store(map_c, args, staging, consumer);
  mbarrier::Cursor at;
  const int lane = threadIdx.x % 32;
  // Steps loaded ahead of the one multiplied; a single stage can only be refilled after it.
  const int ahead = ring.count() > 1 ? ring.count() - 1 : 1;
  if constexpr (!S::kSpecialised) {
    for (int i = 0; i < ahead; ++i) producer->load_next();
  }
  std::uint32_t flags;
  do {
#pragma unroll
    for (float& value : acc) value = 0;
    int row = 0, column = 0;
    do {
      if constexpr (!S::kSpecialised) producer->publish();
      ring.wait_full(at);
      // Read by the lane that releases the stage; the shuffle has all lanes past the wait before.
      const StageHead& head = front.head[at.stage];
      if (lane == 0) flags = head.flags, row = head.unit_row[consumer], column = head.column;
      flags = __shfl_sync(~0U, flags, 0);
      [[maybe_unused]] float scale = 0;
      if constexpr (S::kBlockScales) {
        if (lane == 0) scale = front.scale[at.stage][consumer];
        scale = __shfl_sync(~0U, scale, 0);
      }
      if (any(flags >> consumer & 1)) {
        const char* const tile = ring.stage(at.stage);
        const char *const a = tile + consumer * kTileBytes, *const b = tile + kHeight * kTileBytes;
        if constexpr (S::kPromotes) multiply_and_promote<S>(acc, part, a, b, scale);
        else multiply<S>(acc, a, b);
      }
      ring.template release<S::kCluster>(at.stage);
      ring.advance(at);
      if constexpr (!S::kSpecialised) producer->load_next();
    } while (!any(flags & StageHead::kLastStep));
    if constexpr (S::kScaled && !S::kBlockScales) {
#pragma unroll
      for (float& value : acc) value *= args.scale;
    }
    ptx::keep_in_registers(acc);
    row = __shfl_sync(~0U, row, 0);
    column = __shfl_sync(~0U, column, 0);
    if (row >= 0) store.store(acc, row * kUnitRows, column);
  } while (!any(flags & StageHead::kLastBlock));
  store.finish();
}

template <class S>
__global__ void __launch_bounds__(S::kThreads, S::kBlocksPerSm)
    kernel(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
           const __grid_constant__ CUtensorMap map_c, const __grid_constant__ Arguments args) {
  extern __shared__ __align__(1024) char shared[];
  auto& front = *reinterpret_cast<Front*>(shared);
  char* const staging = shared + kFrontBytes;
  const typename S::Ring ring(front.barriers, staging + S::kStagingBytes, args.stages);
  ring.start(S::kLoader == Loader::tma ? 1 : S::kLoaders, S::kCluster * S::kConsumers / 32);
  std::uint32_t rank = 0;
  if constexpr (S::kCluster > 1) {
    rank = ptx::get_sreg_cluster_ctarank();
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
  }
  const int warpgroup = static_cast<int>(threadIdx.x) / kWarpgroup;
  const auto producer = [&](int thread) {
    return Producer<S>{
        map_a, map_b, args,   ring,
        front, rank,  thread, Walk<S>(args, static_cast<int>(blockIdx.x) / S::kCluster, rank)};
  };
  if constexpr (!S::kSpecialised) {
    Producer<S> own = producer(static_cast<int>(threadIdx.x));
    ptx::griddepcontrol_wait();
    consume<S>(map_c, args, ring, front, staging, warpgroup, &own);
  } else {
    with_roles<S::kConsumers, S::kRoleRegisters>(
        [&](int thread) {
          if (S::kLoader == Loader::tma && thread >= 32) return;
          Producer<S> own = producer(thread);
          ptx::griddepcontrol_wait();
          while (own.load_next())
            if (own.unpublished == ring.count()) own.publish();
          while (own.unpublished > 0) own.publish();
        },
        [&] {
          ptx::griddepcontrol_wait();
          consume<S>(map_c, args, ring, front, staging, warpgroup, nullptr);
        });
  }
  // A CTA must not end before its peers' multicasts into it and their arrivals on its barriers.
  if constexpr (S::kCluster > 1) {
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
  }
}

}  // namespace spmmbench::async_bcsr
