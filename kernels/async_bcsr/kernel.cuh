#pragma once
// The device side of async_bcsr: one block of C per Work item, by producers that fill a ring of
// stages and consumer warpgroups that multiply from it.
//
//   producer warp(group)            ring of stages              consumer warpgroup r = 0 ..
//   height-1 for each step of the group:     +---+---+-------+           for each step: wait full
//     wait empty                    |A 0|A 1|   B   |  stage      unit row r has a block: wgmma,
//     A tiles that exist, B tile -> +---+---+-------+             release the stage before
//     arrive on full                      ...                     else: release at once
//                                                               store 64 x kTileN of C
//
// Without specialisation the consumers are the producers as well: they issue the load of a later
// step after each multiplication.

#include "async_bcsr/load.cuh"
#include "async_bcsr/shape.cuh"
#include "async_bcsr/store.cuh"

namespace spmmbench::async_bcsr {

// The blocks of C that one cluster computes, in order, as one warpgroup sees them. Each is read
// while the one before it is computed.
class WorkList {
 public:
  struct Item {
    int begin, end;  // steps
    int n_tile;
    int unit_row;  // of this consumer
  };

  __device__ WorkList(const Arguments& args, int cluster, int consumer)
      : at_(args.work + (args.work_ptr == nullptr ? cluster : args.work_ptr[cluster])),
        end_(args.work + (args.work_ptr == nullptr ? cluster + 1 : args.work_ptr[cluster + 1])),
        consumer_(consumer) {
    read_next();
  }
  __device__ bool pop(Item& item) {
    if (at_ == end_) return false;
    item = next_;
    ++at_;
    read_next();
    return true;
  }
  // The item after the one popped last; no steps behind the last.
  __device__ const Item& next() const { return next_; }

 private:
  __device__ void read_next() {
    next_ = at_ == end_ ? Item{}
                        : Item{__ldg(&at_->begin), __ldg(&at_->end), __ldg(&at_->n_tile),
                               __ldg(at_->unit_row + consumer_)};
  }

  const Work *at_, *end_;
  int consumer_;
  Item next_;
};

// The state of the loading side, in the threads that load.
template <class S>
struct Producer {
  const CUtensorMap& map_a;
  const CUtensorMap& map_b;
  const Arguments& args;
  const Ring& ring;
  std::uint32_t rank;  // in the cluster
  int thread;          // among the loaders
  mbarrier::Cursor at;
  int unpublished = 0;  // cp.async: groups committed whose arrival on `full` is due
  mbarrier::Cursor publish_at;

  __device__ void load(const BcsrStep& step, int n0) {
    if constexpr (S::kLoader == Loader::tma) {
      if (thread == 0) {
        wait_empty();
        load_tma<S>(map_a, map_b, args, ring, at.stage, step, n0, rank);
      }
    } else {
      wait_empty();
      load_cp_async<S>(args, ring, at.stage, step, n0, thread);
      __pipeline_commit();
      ++unpublished;
    }
    at.advance(ring.stages);
  }
  // cp.async: makes the oldest groups visible to wgmma until `left` are in flight.
  __device__ void publish(int left) {
    if constexpr (S::kLoader == Loader::cp_async) {
      while (unpublished > left) {
        wait_groups(--unpublished);
        cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
        cuda::ptx::mbarrier_arrive(ring.full + publish_at.stage);
        publish_at.advance(ring.stages);
      }
    }
  }

 private:
  __device__ void wait_empty() const { mbarrier::wait(ring.empty + at.stage, at.parity ^ 1); }
  __device__ static void wait_groups(int in_flight) {
    switch (in_flight) {
      case 0: __pipeline_wait_prior(0); break;
      case 1: __pipeline_wait_prior(1); break;
      case 2: __pipeline_wait_prior(2); break;
      default: __pipeline_wait_prior(3); break;
    }
  }
};

template <class S>
__device__ int first_column(const WorkList::Item& work, std::uint32_t rank) {
  return (work.n_tile * S::kCluster + static_cast<int>(rank)) * S::kTileN;
}

// The producers' whole life when they are warps of their own. Lane l of a warp reads step l of the
// next 32, which may be those of the next block of C, while the 32 before them are loaded.
template <class S>
__device__ void produce(Producer<S>& producer, WorkList list) {
  const int lane = threadIdx.x % 32;
  const auto* const steps = reinterpret_cast<const int4*>(producer.args.steps);
  const auto read = [&](int begin, int end) {
    return begin + lane < end ? __ldg(steps + begin + lane) : make_int4(0, -1, -1, -1);
  };
  int4 ahead = read(list.next().begin, list.next().end);
  for (WorkList::Item work; list.pop(work);) {
    const int n0 = first_column<S>(work, producer.rank);
    for (int base = work.begin; base < work.end; base += 32) {
      const int4 mine = ahead;
      ahead = base + 32 < work.end ? read(base + 32, work.end)
                                   : read(list.next().begin, list.next().end);
      for (int i = 0; i < min(32, work.end - base); ++i) {
        const BcsrStep step{__shfl_sync(~0U, mine.x, i),
                            {__shfl_sync(~0U, mine.y, i), __shfl_sync(~0U, mine.z, i),
                             __shfl_sync(~0U, mine.w, i)}};
        producer.load(step, n0);
        producer.publish(producer.ring.stages - 1);
      }
    }
    if (work.begin == work.end) ahead = read(list.next().begin, list.next().end);
  }
  producer.publish(0);
}

template <int kMmas, int kCount>
__device__ void fence_all(float (&acc)[kMmas][kCount]) {
#pragma unroll
  for (int j = 0; j < kMmas; ++j) wgmma::fence_registers(acc[j]);
}

// One step of one consumer: 64 x kTileN += (64 x 128 bytes) * (128 bytes x kTileN). Waits for the
// result: a group left in flight across the branch around this call makes ptxas serialise every
// wgmma (C7518), and the other warpgroups keep the tensor cores busy meanwhile.
template <class S>
__device__ void multiply(float (&acc)[S::kMmas][S::kMmaN / 2], const char* tile_a,
                         const char* tile_b, bool accumulate) {
  constexpr int kGroup = 8 * kLineBytes;
  constexpr int kMmaBytes = 32;  // of k in one instruction
  constexpr int kAdvanceB = S::kMajorB == wgmma::Major::k
                                ? kMmaBytes
                                : kMmaBytes / sizeof(typename S::Element) * kLineBytes;
  const std::uint64_t a = wgmma::descriptor(tile_a, 0, kGroup);
  const std::uint64_t b = wgmma::descriptor(tile_b, kTileBytes, kGroup);
  fence_all(acc);
  wgmma::fence();
#pragma unroll
  for (int i = 0; i < kLineBytes / kMmaBytes; ++i)
#pragma unroll
    for (int j = 0; j < S::kMmas; ++j)
      wgmma::Mma<typename S::Input, S::kMajorB, S::kMmaN>::run(
          acc[j], wgmma::advance(a, i * kMmaBytes),
          wgmma::advance(b, i * kAdvanceB + j * S::kMmaN * kLineBytes), accumulate || i > 0);
  wgmma::commit();
  wgmma::wait<0>();
  fence_all(acc);
}

template <class S>
__device__ void release(const Ring& ring, int stage) {
  if (threadIdx.x % 32 != 0) return;
  if constexpr (S::kCluster == 1) {
    cuda::ptx::mbarrier_arrive(ring.empty + stage);
  } else {
    for (unsigned peer = 0; peer < S::kCluster; ++peer)
      cuda::ptx::mbarrier_arrive(
          cuda::ptx::sem_relaxed, cuda::ptx::scope_cluster, cuda::ptx::space_cluster,
          static_cast<std::uint64_t*>(__cluster_map_shared_rank(ring.empty + stage, peer)));
  }
}

template <class S>
__device__ void consume(const Arguments& args, const Ring& ring, WorkList list, int consumer,
                        std::uint32_t rank, [[maybe_unused]] Producer<S>& producer) {
  float acc[S::kMmas][S::kMmaN / 2];
  mbarrier::Cursor at;
  for (WorkList::Item work; list.pop(work);) {
    const int n0 = first_column<S>(work, rank);
    const int begin = work.begin, end = work.end;
    // Steps loaded ahead of the one multiplied; a single stage can only be refilled after it.
    const int ahead = ring.stages > 1 ? ring.stages - 1 : 1;
    if constexpr (!S::kSpecialised) {
      for (int s = begin; s < min(end, begin + ahead); ++s) producer.load(args.steps[s], n0);
    }
    bool accumulate = false;
    for (int s = begin; s < end; ++s) {
      if constexpr (!S::kSpecialised) producer.publish(min(ahead, end - s) - 1);
      mbarrier::wait(ring.full + at.stage, at.parity);
      // Read by the lane that releases the stage; the shuffle has all lanes past the wait before.
      const std::uint32_t mask =
          __shfl_sync(~0U, threadIdx.x % 32 == 0 ? ring.present[at.stage] : 0, 0);
      const bool present = (mask >> consumer & 1) != 0;
      const char* const tile = ring.tiles + at.stage * S::kStageBytes;
      if (present) {
        multiply<S>(acc, tile + consumer * kTileBytes, tile + S::kHeight * kTileBytes, accumulate);
        accumulate = true;
      }
      release<S>(ring, at.stage);
      if constexpr (!S::kSpecialised) {
        if (s + ahead < end) producer.load(args.steps[s + ahead], n0);
      }
      at.advance(ring.stages);
    }
    const int unit = work.unit_row;
    if (unit < 0) continue;
    const std::int64_t row0 = std::int64_t{unit} * kUnitRows;
#pragma unroll
    for (int j = 0; j < S::kMmas; ++j) {
      if (!accumulate) {
#pragma unroll
        for (float& value : acc[j]) value = 0;
      }
      if (args.c.layout == Layout::row_major) store_rows(acc[j], args.c, row0, n0 + j * S::kMmaN);
      else store_columns(acc[j], args.c, row0, n0 + j * S::kMmaN);
    }
  }
}

template <class S>
__global__ void __launch_bounds__(S::kThreads, S::kBlocksPerSm)
    kernel(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
           const __grid_constant__ Arguments args) {
  namespace ptx = cuda::ptx;
  extern __shared__ char shared[];
  const Ring ring(shared, S::kStageBytes, args.stages);
  if (threadIdx.x == 0) {
    for (int s = 0; s < args.stages; ++s) {
      ptx::mbarrier_init(ring.full + s, S::kLoader == Loader::tma ? 1 : S::kLoaders);
      ptx::mbarrier_init(ring.empty + s, S::kCluster * S::kConsumers / 32);
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  std::uint32_t rank = 0;
  if constexpr (S::kCluster > 1) {
    rank = ptx::get_sreg_cluster_ctarank();
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
  }
  const int cluster = static_cast<int>(blockIdx.x) / S::kCluster;
  const int warpgroup = static_cast<int>(threadIdx.x) / kWarpgroup;
  Producer<S> producer{map_a, map_b, args, ring, rank, static_cast<int>(threadIdx.x), {}, 0, {}};
  if constexpr (!S::kSpecialised) {
    consume<S>(args, ring, WorkList(args, cluster, warpgroup), warpgroup, rank, producer);
  } else if (warpgroup == 0) {
    wgmma::give_registers<S::kProducerRegisters>();
    if (S::kLoader == Loader::cp_async || threadIdx.x < 32)
      produce<S>(producer, WorkList(args, cluster, 0));
  } else {
    wgmma::take_registers<S::kConsumerRegisters>();
    consume<S>(args, ring, WorkList(args, cluster, warpgroup - 1), warpgroup - 1, rank, producer);
  }
  // A block must outlive its peers' multicasts into it and arrivals on its barriers.
  if constexpr (S::kCluster > 1) {
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
  }
}

}  // namespace spmmbench::async_bcsr
