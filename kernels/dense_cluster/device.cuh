#pragma once
// A tile of C, kTileM rows times kTileN columns, by a cluster of CTAs: each multiplies a run of k,
// and the sums are exchanged through distributed shared memory.
//
//   copying thread            ring of stages             a warpgroup for 64 rows
//   A: kTileM x kTileK   ->   +-----------+-----------+
//   B: kTileK x kTileN   ->   | A         | B         |  wgmma, fp32 sums in registers
//                             +-----------+-----------+
//
//   then CTA i sends its sums of columns j to CTA j, which adds those of all CTAs in their order
//   and stores them:
//
//   CTA 0  [sums of 0 | of 1 | of 2 | of 3]   inbox of CTA 0  [from 0][from 1][from 2][from 3]
//   CTA 1  [sums of 0 | of 1 | of 2 | of 3]   inbox of CTA 1  [from 0][from 1][from 2][from 3]
//   ...

#include <cuda.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "common/hopper_ring.cuh"
#include "common/tile_store.cuh"
#include "dense_cluster/columns.cuh"
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

inline constexpr int kWarpgroupRows = 64;
inline constexpr int kMostStages = 16;
inline constexpr int kBarrierBytes = 1024;  // so that the stages are aligned for their swizzle
inline constexpr int kMmaBytes = 32;        // of k that wgmma multiplies

template <class T, TileB kTile, int kTileRows, int kTileColumns>
struct Shape {
  using Element = T;
  static constexpr TileB kTileB = kTile;
  static constexpr bool kTurned = kTile == TileB::turned || kTile == TileB::turned_narrow;
  static constexpr auto kMajor =
      kTile == TileB::col_major || kTurned ? ptx::Major::k : ptx::Major::mn;
  // C^T = B^T * A^T (dense_cluster/columns.cuh).
  static constexpr bool kTransposed = kTile == TileB::transposed;
  static constexpr int kTileM = kTileRows, kTileN = kTileColumns, kTileK = tile_k(sizeof(T));
  static constexpr int kMmaK = kMmaBytes / sizeof(T);
  // In 8 bits tensor cores keep 14 bits of a sum, so those of a stage are added in fp32.
  static constexpr bool kPromotes = sizeof(T) == 1;
  static constexpr int kMultiplyingThreads =
      (kTransposed ? kTileN : kTileM) / kWarpgroupRows * kWarpgroup;
  static constexpr int kThreads = kMultiplyingThreads + 32;
  static constexpr int kTileBytesA = kTileM * kLineBytes;
  static constexpr int kColumnsB = columns_of_b(kTile, kTileN);
  // A box of row-major B is kTileK by as many columns, or a line.
  static constexpr int kBoxColumns = std::min(kColumnsB, kLineBytes / int{sizeof(T)});
  static constexpr int kBoxLineBytes = kBoxColumns * int{sizeof(T)};
  static constexpr int kBoxBytes = kTileK * kBoxLineBytes;
  // Its rows have 16 bytes: without space between them they are copied as one line.
  static constexpr bool kPacksRows = kTile == TileB::narrow || kTile == TileB::turned_narrow;
  // As wgmma reads it.
  static constexpr int kLineBytesB = kTile == TileB::row_major ? kBoxLineBytes : kLineBytes;
  static constexpr int kStageBytes = stage_bytes(kTile, {kTileM, kTileN});
  using Ring = HopperRing<kMostStages, kStageBytes, RingSize::at_launch>;
  struct Barriers {
    RingBarriers<kMostStages> ring;
    std::uint64_t received;  // the sums of the other CTAs
  };
  static_assert(sizeof(Barriers) <= kBarrierBytes);
  static constexpr int kAccumulators = (kTransposed ? kTileM : kTileN) / 2;
  // Whether the sums of two stages are formed at a time: there must be registers for both.
  static constexpr bool kOverlaps = kAccumulators <= 32;
  // A thread's sums in twos: of neighbouring columns of a row.
  static constexpr int kPairs = kAccumulators / 2;
  static constexpr int kPairsLog2 = std::countr_zero(unsigned{kPairs});
  static constexpr int kInboxBytes = kPairs * kMultiplyingThreads * int{sizeof(float2)};
  // Whole chunks of C, whatever its type (common/tile_store.cuh). The inbox has room for them.
  static constexpr bool kStoresChunks = kTileN >= kCopiedColumns;
};

struct Arguments {
  int k_tiles;       // of a stage
  int row_tiles;     // of C
  int cluster_log2;  // of the CTAs of a cluster
  int stages;        // of a CTA's ring
  // B without space between its rows (Shape::kPacksRows): the map has it as one line.
  bool b_in_one_line = false;
  float scale = 1;  // of A times that of B, in 8 bits
};

// What is copied of that line at once: a box has at most 256 elements (CUDA driver API).
using ElementOfLine = float;
inline constexpr int kLinePieceBytes = 256 * int{sizeof(ElementOfLine)};

// Neighbours of a row of C, of which the first has an even column.
template <class T>
struct alignas(2 * sizeof(T)) TwoOf {
  T first, second;
};

// Stores two sums of a thread: neighbours in a row of C.
template <class S, class T, Layout kLayout>
__device__ void store_pair(const DenseView& c, std::int64_t row, std::int64_t column, int pair,
                           float2 sum) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  if constexpr (S::kTransposed) {
    row += 8 * (pair / 2) + 2 * (lane % 4) + pair % 2;
    column += 16 * warp + 2 * (lane / 4);
  } else {
    row += 16 * warp + lane / 4 + 8 * (pair % 2);
    column += 8 * (pair / 2) + 2 * (lane % 4);
  }
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
      store_pair<S, T, kLayout>(c, row, column, ((rank << parcels_log2) + i) * kPairs + j, sum);
    }
  }
}

// Type and layout are tested outside of the loops over sums: `run` gets a zero of the type and the
// layout as a constant.
template <class S, class Run>
__device__ void visit_c(const DenseView& c, Run&& run) {
  const auto with_layout = [&](auto zero) {
    if (S::kTransposed || c.layout == Layout::row_major)
      run(zero, std::integral_constant<Layout, Layout::row_major>{});
    else if constexpr (!S::kTransposed)
      run(zero, std::integral_constant<Layout, Layout::col_major>{});
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
  visit_c<S>(c, [&](auto zero, auto layout) {
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
    visit_c<S>(c, [&](auto zero, auto layout) {
#pragma unroll
      for (int pair = 0; pair < S::kPairs; ++pair)
        store_pair<S, decltype(zero), layout()>(c, row, column, pair,
                                                {acc[2 * pair], acc[2 * pair + 1]});
    });
  } else {
    const int warpgroup = static_cast<int>(threadIdx.x) / kWarpgroup;
    const bool leader = threadIdx.x % kWarpgroup == 0;
    char* chunk = staging + warpgroup * S::kAccumulators * kWarpgroup * int{sizeof(float)};
    (S::kTransposed ? column : row) += warpgroup * kWarpgroupRows;
    tile_store::with_kind(c.type, c.layout, [&]<bool kWide, Layout kLayout>() {
      constexpr int kColumns = tile_store::kColumns<kWide>;
#pragma unroll
      for (int first = 0; first < 2 * S::kAccumulators; first += kColumns) {
        if constexpr (S::kTransposed) {
          if (row + first >= c.rows) break;
          tile_store::write_transposed_chunk<kWide>(acc + first / 2, chunk, c.type);
        } else {
          if (column + first >= c.cols) break;
          tile_store::write_chunk<kWide, kLayout>(acc + first / 2, chunk, c.type);
        }
        ptx::fence_proxy_async(ptx::space_shared);
        __barrier_sync_count(1 + warpgroup, kWarpgroup);
        if (leader) {
          // The rows of C^T, which is column-major, are columns of C.
          if constexpr (S::kTransposed)
            tile_store::copy_chunk<kWide, Layout::col_major>(map_c, chunk, column, row + first);
          else tile_store::copy_chunk<kWide, kLayout>(map_c, chunk, row, column + first);
        }
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
  int first_k, k_tiles;  // of a stage
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
    copy(map_a, stage, (part.first_k + i) * S::kTileK, part.row, full);
  }
  __device__ void load_b(const Part& part, int i, char* stage, std::uint64_t* full) const {
    char* const to = stage + S::kTileBytesA;
    const int k = (part.first_k + i) * S::kTileK;
    if constexpr (S::kTileB == TileB::col_major) copy(map_b, to, k, part.column, full);
    else if (S::kPacksRows && args.b_in_one_line)
      for (int j = 0; j < S::kTileK * kPackedRowBytes; j += kLinePieceBytes)
        copy(map_b, to + j, (k * kPackedRowBytes + j) / int{sizeof(ElementOfLine)}, 0, full);
    else
      for (int j = 0; j < S::kColumnsB / S::kBoxColumns; ++j)
        copy(map_b, to + j * S::kBoxBytes, part.column + j * S::kBoxColumns, k, full);
  }

 private:
  __device__ static void copy(const CUtensorMap& map, char* to, std::int32_t x, std::int32_t y,
                              std::uint64_t* full) {
    const std::int32_t from[2] = {x, y};
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, to, &map, from, full);
  }
};

// Narrow B: columns 8 to 15 are the next 8 of k, and so on, also beyond the end of the stage, as
// are columns 16 to 31 of one that was turned. What comes of them lies beyond the columns of C.
template <class S>
__device__ std::uint64_t descriptor_of_b(const char* tile) {
  constexpr int kBlock = 8 * kNarrowColumns * 2;
  if constexpr (S::kTileB == TileB::narrow) return ptx::wgmma_descriptor<0>(tile, kBlock, kBlock);
  else return ptx::wgmma_descriptor<S::kLineBytesB>(tile, S::kBoxBytes, 8 * S::kLineBytesB);
}

// Starts sums (+)= A * B of a stage.
template <class S>
__device__ void multiply_stage(float (&sums)[S::kAccumulators], const char* stage, bool add) {
  constexpr int kGroup = 8 * kLineBytes;
  constexpr int kAdvanceB = S::kMajor == ptx::Major::k      ? kMmaBytes
                            : S::kTileB == TileB::row_major ? S::kMmaK * S::kLineBytesB
                                                            : S::kMmaK * kNarrowColumns * 2;
  const int first_line = static_cast<int>(threadIdx.x) / kWarpgroup * kWarpgroupRows;
  const std::uint64_t a = ptx::wgmma_descriptor(stage + first_line * kLineBytes, 0, kGroup);
  const std::uint64_t b = descriptor_of_b<S>(stage + S::kTileBytesA);
  ptx::wgmma_fence();
#pragma unroll
  for (int k = 0; k < kLineBytes / kMmaBytes; ++k)
    ptx::wgmma_mma_async<typename S::Element, S::kMajor, S::kTileN>(
        sums, ptx::wgmma_descriptor_advance(a, k * kMmaBytes),
        ptx::wgmma_descriptor_advance(b, k * kAdvanceB), add || k > 0);
  ptx::wgmma_commit_group();
}

template <class S>
__device__ void multiply(float (&acc)[S::kAccumulators], const typename S::Ring& ring, int count) {
  mbarrier::Cursor at;
  int finished = -1;  // the stage before
  for (int i = 0; i < count; ++i) {
    ring.wait_full(at);
    multiply_stage<S>(acc, ring.stage(at.stage), i > 0);
    ptx::wgmma_wait_group<1>();
    if (finished >= 0) ring.release(finished);
    finished = at.stage;
    ring.advance(at);
  }
  ptx::wgmma_wait_group<0>();
  ptx::keep_in_registers(acc);
}

// Sums of a stage in 8 bits that are being formed, and what wgmma reads for them.
template <class S>
struct PartialSums {
  float sums[S::kAccumulators];
  typename ColumnsOfB<S::kBoxLineBytes>::Registers columns;  // if kTransposed
};

// Starts sums = (columns of B) * A^T of a stage.
template <class S>
__device__ void multiply_transposed_stage(PartialSums<S>& part, const char* stage) {
  const std::uint64_t a = ptx::wgmma_descriptor(stage, 0, 8 * kLineBytes);
  ptx::wgmma_fence();
#pragma unroll
  for (int k = 0; k < kLineBytes / kMmaBytes; ++k)
    ptx::wgmma_mma_async<typename S::Element, ptx::Major::k, S::kTileM>(
        part.sums, part.columns[k][0], part.columns[k][1], part.columns[k][2], part.columns[k][3],
        ptx::wgmma_descriptor_advance(a, k * kMmaBytes), k > 0);
  ptx::wgmma_commit_group();
}

// `multiply` in 8 bits.
template <class S>
__device__ void multiply_and_promote(float (&acc)[S::kAccumulators], const typename S::Ring& ring,
                                     int count, float scale) {
  const ColumnsOfB<S::kBoxLineBytes> columns(threadIdx.x);
  PartialSums<S> even;
#pragma unroll
  for (float& sum : acc) sum = 0;
  mbarrier::Cursor at, finished;
  const auto start = [&](PartialSums<S>& part) {
    ring.wait_full(at);
    const char* const stage = ring.stage(at.stage);
    if constexpr (S::kTurned) turn_columns<S::kColumnsB>(ring.stage(at.stage) + S::kTileBytesA);
    if constexpr (S::kTransposed) {
      columns.read(part.columns, stage + S::kTileBytesA);
      multiply_transposed_stage(part, stage);
    } else {
      multiply_stage<S>(part.sums, stage, false);
    }
    ring.advance(at);
  };
  const auto add = [&](PartialSums<S>& part) {
    ptx::keep_in_registers(part.sums);
    ring.release(finished.stage);
    ring.advance(finished);
#pragma unroll
    for (int i = 0; i < S::kAccumulators; ++i) acc[i] += part.sums[i];
  };
  if constexpr (S::kOverlaps) {
    PartialSums<S> odd;
    start(even);
    for (int i = 2; i < count; i += 2) {
      start(odd);
      ptx::wgmma_wait_group<1>();
      add(even);
      start(even);
      ptx::wgmma_wait_group<1>();
      add(odd);
    }
    if (count % 2 == 0) {
      start(odd);
      ptx::wgmma_wait_group<0>();
      add(even);
      add(odd);
    } else {
      ptx::wgmma_wait_group<0>();
      add(even);
    }
  } else {
    for (int i = 0; i < count; ++i) {
      start(even);
      ptx::wgmma_wait_group<0>();
      add(even);
    }
  }
#pragma unroll
  for (float& sum : acc) sum *= scale;
  // Among four sums of C^T the first and the third are neighbours in a row of C.
  if constexpr (S::kTransposed)
#pragma unroll
    for (int i = 0; i < S::kAccumulators; i += 4) {
      const float second = acc[i + 1];
      acc[i + 1] = acc[i + 2];
      acc[i + 2] = second;
    }
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
        if constexpr (S::kPromotes) multiply_and_promote<S>(acc, ring, part.k_tiles, args.scale);
        else multiply<S>(acc, ring, part.k_tiles);
        if constexpr (kSplits) {
          ptx::cluster_wait();
          join<S>(c, part.row, part.column, acc, inbox, &barriers.received, rank, cluster_log2);
        } else {
          store<S>(map_c, c, part.row, part.column, acc, inbox);
        }
      });
}

}  // namespace spmmbench::dense_cluster
