#pragma once
// The ring that Hopper kernels run in: stages in shared memory, filled by a producer ahead of the
// warpgroups that multiply from them with wgmma.
//
//   producer, the last warps          stages                  consumers, all warps before them
//   wait_empty                        +------+------+-----+   wait_full
//   copies that arrive on full    ->  |      |      | ... |   wgmma reads the stage
//   advance                           +------+------+-----+   release, advance
//
// A kernel reads from top to bottom as
//
//   ring.start(...)           barriers; the next launch may begin
//   with_roles<...>(          registers move from the producer to the consumers
//       produce,              loads: its own loop, or fill(), which asks it for tiles of A and B
//       consume)              multiply and store: its own loop
//
// The loops over accumulators belong to the kernels: how many groups of wgmma are in flight, and
// what is decoded meanwhile, is what they differ in.

#include <cstdint>

#include "common/mbarrier.cuh"
#include "ptx/cuda_ptx.cuh"
#include "ptx/griddepcontrol.cuh"
#include "ptx/setmaxnreg.cuh"

namespace spmmbench {

// In shared memory. `full`: a stage's copies have arrived; `empty`: its readers are done with it.
template <int kStages>
struct RingBarriers {
  std::uint64_t full[kStages], empty[kStages];
};

enum class RingSize { fixed, at_launch };

// kStages: how many there are, or with at_launch the most that there can be.
template <int kStages, int kStageBytes, RingSize kSize = RingSize::fixed>
class HopperRing {
 public:
  using Barriers = RingBarriers<kStages>;

  __device__ HopperRing(Barriers& barriers, char* stages, int count = kStages)
      : barriers_(barriers), stages_(stages), count_(count) {}

  __device__ int count() const { return kSize == RingSize::fixed ? kStages : count_; }
  __device__ char* stage(int i) const { return stages_ + i * kStageBytes; }
  __device__ std::uint64_t* full(int i) const { return barriers_.full + i; }

  // All threads call this. `producers`, `readers`: arrivals that end a phase of `full`, of `empty`;
  // `prepare_others` prepares the kernel's other barriers, in the same thread. One thread does all
  // of it: where the lanes of a warp share it and all execute the fence, a launch of dense_cluster
  // takes 2 % longer (docs/kernels/dense_cluster.md).
  template <class Prepare>
  __device__ void start(std::uint32_t producers, std::uint32_t readers,
                        Prepare&& prepare_others) const {
    if (threadIdx.x == 0) {
      for (int i = 0; i < count(); ++i) {
        ptx::mbarrier_init(barriers_.full + i, producers);
        ptx::mbarrier_init(barriers_.empty + i, readers);
      }
      prepare_others();
      ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    __syncthreads();
    ptx::griddepcontrol_launch_dependents();
  }
  __device__ void start(std::uint32_t producers, std::uint32_t readers) const {
    start(producers, readers, [] {});
  }

  // A producer's or a consumer's next stage.
  __device__ void advance(mbarrier::Cursor& at) const { at.advance(count()); }

  // ---- For producers

  // Until the readers of the stage's previous phase are done.
  __device__ void wait_empty(const mbarrier::Cursor& at) const { at.wait_empty(barriers_.empty); }
  // Makes a thread's cp.async copies, which have ended, visible to wgmma, and arrives.
  __device__ void publish(const mbarrier::Cursor& at) const { at.publish(barriers_.full); }

  // The whole loop of a producer thread whose stages are filled by bulk copies alone. `loads` has
  //   first(), last()                         pieces of work
  //   piece(p)                                what the others get
  //   stages(piece)                           how many it passes through the ring
  //   load_a(piece, i, stage, full)           of its stage i, what no launch writes
  //   load_b(piece, i, stage, full)           the rest
  // The ring is filled with A while the launch before ends.
  template <class Loads>
  __device__ void fill(const Loads& loads) const {
    const auto load_a = [&](const auto& piece, int i, int at) {
      mbarrier::arrive_expect(full(at), kStageBytes);
      loads.load_a(piece, i, stage(at), full(at));
    };
    const int first = loads.first(), last = loads.last();
    auto piece = loads.piece(first);
    int ahead = min(loads.stages(piece), count());
    for (int i = 0; i < ahead; ++i) load_a(piece, i, i);
    ptx::griddepcontrol_wait();
    mbarrier::Cursor at;
    for (int p = first; p < last; ++p) {
      if (p > first) piece = loads.piece(p);
      const int stages = loads.stages(piece);
      for (int i = 0; i < stages; ++i) {
        if (ahead > 0) {
          --ahead;
        } else {
          wait_empty(at);
          load_a(piece, i, at.stage);
        }
        loads.load_b(piece, i, stage(at.stage), full(at.stage));
        advance(at);
      }
    }
  }

  // ---- For consumers

  // Until the stage is filled.
  __device__ void wait_full(const mbarrier::Cursor& at) const { at.wait_full(barriers_.full); }
  // A warp is done with a stage. A cluster whose CTAs copy into each other's stages releases those
  // of all its kCluster CTAs.
  template <int kCluster = 1>
  __device__ void release(int i) const {
    if (threadIdx.x % 32 != 0) return;
    std::uint64_t* const empty = barriers_.empty + i;
    if constexpr (kCluster == 1) {
      ptx::mbarrier_arrive(empty);
    } else {
      for (unsigned peer = 0; peer < kCluster; ++peer)
        ptx::mbarrier_arrive(ptx::weakest_arrival_t{}, ptx::scope_cluster, ptx::space_cluster,
                             static_cast<std::uint64_t*>(__cluster_map_shared_rank(empty, peer)));
    }
  }

 private:
  Barriers& barriers_;
  char* stages_;
  int count_;
};

// Registers of a thread once they have moved between the roles' warpgroups; 0: none move.
struct RoleRegisters {
  int producer = 0, consumer = 0;
};

// The first kConsumers threads consume, those behind them produce; `produce` gets their number
// among these.
template <int kConsumers, RoleRegisters kRegisters = RoleRegisters{}, class Produce, class Consume>
__device__ void with_roles(Produce&& produce, Consume&& consume) {
  if (threadIdx.x >= kConsumers) {
    if constexpr (kRegisters.producer > 0) ptx::setmaxnreg_dec<kRegisters.producer>();
    produce(static_cast<int>(threadIdx.x) - kConsumers);
  } else {
    if constexpr (kRegisters.consumer > 0) ptx::setmaxnreg_inc<kRegisters.consumer>();
    consume();
  }
}

}  // namespace spmmbench
