#pragma once
// A tile of C, kTileM rows times kTileN columns, by a cluster of CTAs: each multiplies a run of k,
// and the sums are exchanged through distributed shared memory.
//
//   copying thread           ring of stages             a warpgroup for 64 rows
//   A: kTileM x 64 of k  ->  +-----------+-----------+
//   B: 64 of k x kTileN  ->  | A         | B         |  wgmma, fp32 sums in registers
//                            +-----------+-----------+
//   then CTA i sends its sums of columns j to CTA j, which adds those of all CTAs in their order
//   and stores them:
//
//   CTA 0  [sums of 0 | of 1 | of 2 | of 3]   inbox of CTA 0  [from 0][from 1][from 2][from 3]
//   CTA 1  [sums of 0 | of 1 | of 2 | of 3]   inbox of CTA 1  [from 0][from 1][from 2][from 3]
//   ...

#include <cuda.h>

#include <bit>
#include <cstdint>
#include <type_traits>

#include "common/hopper_ring.cuh"
#include "common/tile_store.cuh"
#include "dense_cluster/split.hpp"
#include "gpu/element.cuh"
#include "ptx/cluster.cuh"
#include "ptx/cuda_ptx.cuh"
#include "ptx/griddepcontrol.cuh"
#include "ptx/keep.cuh"
#include "ptx/prefetch_tensormap.cuh"
#include "ptx/wgmma.cuh"
#include "spmmbench/device.hpp"

namespace spmmbench::dense_cluster {

inline constexpr int kWarpgroup = 128, kWarpgroupRows = 64;
inline constexpr int kMostStages = 16;
inline constexpr int kBarrierBytes = 1024;  // so that the stages are aligned for their swizzle
inline constexpr int kMmaK = 16;

template <class T, TileB kTile, int kTileRows, int kTileColumns>
struct Shape {
  using Element = T;
  static constexpr TileB kTileB = kTile;
  static constexpr auto kMajor = kTile == TileB::col_major ? ptx::Major::k : ptx::Major::mn;
  static constexpr int kTileM = kTileRows, kTileN = kTileColumns;
  static constexpr int kMultiplyingThreads = kTileM / kWarpgroupRows * kWarpgroup;
  static constexpr int kThreads = kMultiplyingThreads + 32;
  static constexpr int kTileBytesA = kTileM * kLineBytes;
  // A box of row-major B is 64 of k by 16, 32 or 64 columns.
  static constexpr int kBoxColumns = kTileN < 64 ? kTileN : 64;
  static constexpr int kBoxBytes = kTileK * kBoxColumns * 2;
  static constexpr int kLineBytesB = kTile == TileB::row_major ? 2 * kBoxColumns : kLineBytes;
  static constexpr int kStageBytes = stage_bytes(kTile, {kTileM, kTileN});
  using Ring = HopperRing<kMostStages, kStageBytes, RingSize::at_launch>;
  struct Barriers {
    RingBarriers<kMostStages> ring;
    std::uint64_t received;  // the sums of the other CTAs
  };
  static_assert(sizeof(Barriers) <= kBarrierBytes);
  static constexpr int kAccumulators = kTileN / 2;
  // A thread's sums in twos: of neighbouring columns of a row.
  static constexpr int kPairs = kAccumulators / 2;
  static constexpr int kPairsLog2 = std::countr_zero(unsigned{kPairs});
  static constexpr int kInboxBytes = kPairs * kMultiplyingThreads * int{sizeof(float2)};
  // Whole chunks of C, whatever its type (common/tile_store.cuh). The inbox has room for them.
  static constexpr bool kStoresChunks = kTileN >= kCopiedColumns;
};

struct Arguments {
  int k_tiles;       // of 64
  int row_tiles;     // of C
  int cluster_log2;  // of the CTAs of a cluster
  int stages;        // of a CTA's ring
  // Narrow B without space between its rows: the map has it as one line.
  bool b_in_one_line = false;
};

// Elements of narrow B in a line that are copied at once: a box has at most 256 (CUDA driver API).
inline constexpr int kPieceOfLine = 256;

// Neighbours of a row of C, of which the first has an even column.
template <class T>
struct alignas(2 * sizeof(T)) TwoOf {
  T first, second;
};

// Stores two sums of a thread, as wgmma leaves them.
template <class T, Layout kLayout>
__device__ void store_pair(const DenseView& c, std::int64_t row, std::int64_t column, int pair,
                           float2 sum) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  row += 16 * warp + lane / 4 + 8 * (pair % 2);
  column += 8 * (pair / 2) + 2 * (lane % 4);
  if (row >= c.rows || column >= c.cols) return;
  const bool both = column + 1 < c.cols;
  if constexpr (kLayout == Layout::row_major) {
    T* const to = static_cast<T*>(c.data) + row * c.ld + column;
    if (both) *reinterpret_cast<TwoOf<T>*>(to) = {from_float<T>(sum.x), from_float<T>(sum.y)};
    else *to = from_float<T>(sum.x);
  } else {
    T* const to = static_cast<T*>(c.data) + column * c.ld + row;
    *to = from_float<T>(sum.x);
    if (both) to[c.ld] = from_float<T>(sum.y);
  }
}

// What a thread sends of its sums at once: one pair or two.
template <int kPairs>
struct alignas(8 * kPairs) Parcel {
  float2 pair[kPairs];
};

// Sends a thread's sums to the other CTAs of the cluster, 2^parcels_log2 parcels to each, and keeps
// those of this CTA. A division for each parcel would take longer than sending it.
template <class S, int kPairs>
__device__ void send_sums(const float (&acc)[S::kAccumulators], char* inbox,
                          std::uint64_t* received, int rank, int parcels_log2) {
  constexpr int kParcels = S::kPairs / kPairs;
  constexpr int kDistance = S::kMultiplyingThreads * int{sizeof(Parcel<kPairs>)};
  char* const own = inbox + (rank << parcels_log2) * kDistance +
                    static_cast<int>(threadIdx.x) * int{sizeof(Parcel<kPairs>)};
  const auto first = static_cast<std::uint32_t>(__cvta_generic_to_shared(own));
  const auto barrier = static_cast<std::uint32_t>(__cvta_generic_to_shared(received));
#pragma unroll
  for (int i = 0; i < kParcels; ++i) {
    const int to = i >> parcels_log2, offset = (i - (to << parcels_log2)) * kDistance;
    float sums[2 * kPairs];
#pragma unroll
    for (int j = 0; j < 2 * kPairs; ++j) sums[j] = acc[2 * kPairs * i + j];
    if (to == rank)
      *reinterpret_cast<Parcel<kPairs>*>(own + offset) =
          reinterpret_cast<const Parcel<kPairs>&>(sums);
    else ptx::st_async(ptx::map_to_cta(first + offset, to), sums, ptx::map_to_cta(barrier, to));
  }
}

// Adds what the CTAs have sent, in their order.
template <class S, class T, Layout kLayout, int kPairs>
__device__ void add_and_store(const DenseView& c, std::int64_t row, std::int64_t column,
                              const char* inbox, int rank, int parcels_log2, int cluster) {
  const auto* const from = reinterpret_cast<const Parcel<kPairs>*>(inbox) + threadIdx.x;
  const int parcels = 1 << parcels_log2;
  for (int i = 0; i < parcels; ++i) {
    Parcel<kPairs> parts[kMostCluster];
#pragma unroll
    for (int p = 0; p < kMostCluster; ++p)
      if (p < cluster) parts[p] = from[((p << parcels_log2) + i) * S::kMultiplyingThreads];
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      float2 sum = parts[0].pair[j];
#pragma unroll
      for (int p = 1; p < kMostCluster; ++p)
        if (p < cluster) {
          sum.x += parts[p].pair[j].x;
          sum.y += parts[p].pair[j].y;
        }
      store_pair<T, kLayout>(c, row, column, ((rank << parcels_log2) + i) * kPairs + j, sum);
    }
  }
}

// Type and layout are tested outside of the loops over sums: `run` gets a zero of the type and the
// layout as a constant.
template <class Run>
__device__ void visit_c(const DenseView& c, Run&& run) {
  const auto with_layout = [&](auto zero) {
    if (c.layout == Layout::row_major)
      run(zero, std::integral_constant<Layout, Layout::row_major>{});
    else run(zero, std::integral_constant<Layout, Layout::col_major>{});
  };
  switch (c.type) {
    case ElementType::f32: with_layout(float{}); break;
    case ElementType::f16: with_layout(__half{}); break;
    case ElementType::bf16: with_layout(__nv_bfloat16{}); break;
    default: break;  // fp64 is not added in fp32
  }
}

// Joins the sums of the cluster's CTAs and stores them.
template <class S>
__device__ void join(const DenseView& c, int row, int column, const float (&acc)[S::kAccumulators],
                     char* inbox, std::uint64_t* received, int rank, int cluster_log2) {
  // How many of a thread's pairs each CTA adds.
  const int pairs_log2 = S::kPairsLog2 - cluster_log2, cluster = 1 << cluster_log2;
  if (pairs_log2 == 0) send_sums<S, 1>(acc, inbox, received, rank, 0);
  else send_sums<S, 2>(acc, inbox, received, rank, pairs_log2 - 1);
  mbarrier::wait(received, 0);
  ptx::griddepcontrol_wait();  // the launch before may still read C
  visit_c(c, [&](auto zero, auto layout) {
    using T = decltype(zero);
    if (pairs_log2 == 0) add_and_store<S, T, layout(), 1>(c, row, column, inbox, rank, 0, cluster);
    else add_and_store<S, T, layout(), 2>(c, row, column, inbox, rank, pairs_log2 - 1, cluster);
  });
}

// Stores the sums of a CTA that shares K with no other: a wide tile chunk by chunk through shared
// memory.
template <class S>
__device__ void store(const CUtensorMap& map_c, const DenseView& c, int row, int column,
                      const float (&acc)[S::kAccumulators], char* staging) {
  ptx::griddepcontrol_wait();  // the launch before may still read C
  if constexpr (!S::kStoresChunks) {
    visit_c(c, [&](auto zero, auto layout) {
#pragma unroll
      for (int pair = 0; pair < S::kPairs; ++pair)
        store_pair<decltype(zero), layout()>(c, row, column, pair,
                                             {acc[2 * pair], acc[2 * pair + 1]});
    });
  } else {
    const int warpgroup = static_cast<int>(threadIdx.x) / kWarpgroup;
    const bool leader = threadIdx.x % kWarpgroup == 0;
    char* chunk = staging + warpgroup * S::kTileN * kWarpgroupRows * int{sizeof(float)};
    row += warpgroup * kWarpgroupRows;
    tile_store::with_kind(c.type, c.layout, [&]<bool kWide, Layout kLayout>() {
      constexpr int kColumns = tile_store::kColumns<kWide>;
#pragma unroll
      for (int first = 0; first < S::kTileN; first += kColumns) {
        if (column + first >= c.cols) break;
        tile_store::write_chunk<kWide, kLayout>(acc + first / 2, chunk, c.type);
        ptx::fence_proxy_async(ptx::space_shared);
        __barrier_sync_count(1 + warpgroup, kWarpgroup);
        if (leader) tile_store::copy_chunk<kWide, kLayout>(map_c, chunk, row, column + first);
        chunk += tile_store::kChunkBytes;
      }
    });
    if (!leader) return;
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());  // shared memory must outlive the copies
  }
}

// The part of a tile of C that a CTA computes.
struct Part {
  int row, column;       // of C
  int first_k, k_tiles;  // of 64
};

// What the producer loads: the tiles of A and B of one part.
template <class S>
struct Loads {
  const Arguments& args;
  const CUtensorMap& map_a;
  const CUtensorMap& map_b;
  const Part& part;

  __device__ int first() const { return 0; }
  __device__ int last() const { return 1; }
  __device__ Part piece(int) const { return part; }
  __device__ int stages(const Part& part) const { return part.k_tiles; }

  __device__ void load_a(const Part& part, int i, char* stage, std::uint64_t* full) const {
    copy(map_a, stage, (part.first_k + i) * kTileK, part.row, full);
  }
  __device__ void load_b(const Part& part, int i, char* stage, std::uint64_t* full) const {
    char* const to = stage + S::kTileBytesA;
    const int k = (part.first_k + i) * kTileK;
    if constexpr (S::kTileB == TileB::col_major) copy(map_b, to, k, part.column, full);
    else if (S::kTileB == TileB::narrow && args.b_in_one_line)
      for (int j = 0; j < kTileK * kNarrowColumns; j += kPieceOfLine)
        copy(map_b, to + 2 * j, k * kNarrowColumns + j, 0, full);
    else
      for (int j = 0; j < S::kTileN / S::kBoxColumns; ++j)
        copy(map_b, to + j * S::kBoxBytes, part.column + j * S::kBoxColumns, k, full);
  }

 private:
  __device__ static void copy(const CUtensorMap& map, char* to, std::int32_t x, std::int32_t y,
                              std::uint64_t* full) {
    const std::int32_t from[2] = {x, y};
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, to, &map, from, full);
  }
};

// Narrow B: columns 8 to 15 are the next 8 of k, and so on, also beyond the end of the stage. What
// comes of them lies beyond the columns of C.
template <class S>
__device__ std::uint64_t descriptor_of_b(const char* tile) {
  constexpr int kBlock = 8 * kNarrowColumns * 2;
  if constexpr (S::kTileB == TileB::narrow) return ptx::wgmma_descriptor<0>(tile, kBlock, kBlock);
  else return ptx::wgmma_descriptor<S::kLineBytesB>(tile, S::kBoxBytes, 8 * S::kLineBytesB);
}

template <class S>
__device__ void multiply(float (&acc)[S::kAccumulators], const typename S::Ring& ring, int count) {
  constexpr int kGroup = 8 * kLineBytes;
  constexpr int kAdvanceB = S::kTileB == TileB::col_major   ? 2 * kMmaK
                            : S::kTileB == TileB::row_major ? kMmaK * S::kLineBytesB
                                                            : kMmaK * kNarrowColumns * 2;
  const int first_line = static_cast<int>(threadIdx.x) / kWarpgroup * kWarpgroupRows;
  mbarrier::Cursor at;
  int finished = -1;  // the stage before
  for (int i = 0; i < count; ++i) {
    ring.wait_full(at);
    const char* const stage = ring.stage(at.stage);
    const std::uint64_t a = ptx::wgmma_descriptor(stage + first_line * kLineBytes, 0, kGroup);
    const std::uint64_t b = descriptor_of_b<S>(stage + S::kTileBytesA);
    ptx::wgmma_fence();
#pragma unroll
    for (int k = 0; k < kTileK / kMmaK; ++k)
      ptx::wgmma_mma_async<typename S::Element, S::kMajor, S::kTileN>(
          acc, ptx::wgmma_descriptor_advance(a, k * 2 * kMmaK),
          ptx::wgmma_descriptor_advance(b, k * kAdvanceB), i > 0 || k > 0);
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<1>();
    if (finished >= 0) ring.release(finished);
    finished = at.stage;
    ring.advance(at);
  }
  ptx::wgmma_wait_group<0>();
  ptx::keep_in_registers(acc);
}

// With kSplits the CTAs of a cluster share K; without, each CTA walks all of it. There are two
// kernels because one with the code of both takes up to 10 % longer
// (docs/kernels/dense_cluster.md).
template <class S, bool kSplits>
__global__ void __launch_bounds__(S::kThreads)
    multiply_tiles(const __grid_constant__ Arguments args,
                   const __grid_constant__ CUtensorMap map_a,
                   const __grid_constant__ CUtensorMap map_b,
                   const __grid_constant__ CUtensorMap map_c, const __grid_constant__ DenseView c) {
  extern __shared__ __align__(1024) char shared[];
  auto& barriers = *reinterpret_cast<typename S::Barriers*>(shared);
  const typename S::Ring ring(barriers.ring, shared + kBarrierBytes, args.stages);
  char* const inbox = ring.stage(args.stages);
  const int cluster_log2 = kSplits ? args.cluster_log2 : 0, cluster = 1 << cluster_log2;
  const int tile = static_cast<int>(blockIdx.x) >> cluster_log2;
  const int rank = static_cast<int>(blockIdx.x) & (cluster - 1);
  const int first = args.k_tiles * rank >> cluster_log2;
  const Part part{tile % args.row_tiles * S::kTileM, tile / args.row_tiles * S::kTileN, first,
                  (args.k_tiles * (rank + 1) >> cluster_log2) - first};
  if (threadIdx.x == S::kMultiplyingThreads) {
    ptx::prefetch_tensormap(map_a);
    ptx::prefetch_tensormap(map_b);
  }
  ring.start(1, S::kMultiplyingThreads / 32, [&] { mbarrier::init(&barriers.received, 1, 1); });
  if constexpr (kSplits) {
    if (threadIdx.x == 0)
      mbarrier::arrive_expect(&barriers.received,
                              S::kInboxBytes - (S::kInboxBytes >> cluster_log2));
    ptx::cluster_arrive_relaxed();  // before others write here, the barrier must be ready
  }
  with_roles<S::kMultiplyingThreads>(
      [&](int thread) {
        if (thread == 0) ring.fill(Loads<S>{args, map_a, map_b, part});
        __syncwarp();
        if constexpr (kSplits) ptx::cluster_wait();
      },
      [&] {
        float acc[S::kAccumulators];
        multiply<S>(acc, ring, part.k_tiles);
        if constexpr (kSplits) {
          ptx::cluster_wait();
          join<S>(c, part.row, part.column, acc, inbox, &barriers.received, rank, cluster_log2);
        } else {
          store<S>(map_c, c, part.row, part.column, acc, inbox);
        }
      });
}

}  // namespace spmmbench::dense_cluster
