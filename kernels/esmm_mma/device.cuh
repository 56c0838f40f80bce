#pragma once
// The product over the lists: a persistent CTA takes tiles of C one after the other.
//
//   producer warp w = 0 .. 3           ring of stages              consumer warpgroup r = 0, 1
//   for each stage of each tile:       +---------+---------+---+   for each stage: wait full
//     entries, one a lane              | strips  | strips  |   |     A of 64 rows to registers
//     wait empty                       | A 0..3  | B 0..7  |   |     for each strip of B that a
//     chunk strip w of A, strips 2w, 2w + 1  +---------+---------+---+       has: wgmma m64n32
//       of B by cp.async                                             release; last one: store C
//     arrive on full
//
// A strip's line that an entry lacks is filled with zeros. A strip of B that no entry of a chunk
// has is neither filled nor multiplied.

#include <cuda_pipeline_primitives.h>

#include "esmm_mma/shape.cuh"
#include "ptx/cp_async.cuh"
#include "ptx/griddepcontrol.cuh"
#include "ptx/keep.cuh"
#include "ptx/ld_shared.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/wgmma_if.cuh"

namespace spmmbench::esmm_mma {

inline constexpr int kRasterRows = 16;  // tiles of C that share panels of B in L2

// Tile `index` of a rows x cols grid, walked in bands of kRasterRows rows, column by column.
__device__ inline int2 raster(int index, int rows, int cols) {
  const int band = index / (kRasterRows * cols);
  const int height = min(kRasterRows, rows - band * kRasterRows);
  const int within = index - band * kRasterRows * cols;
  return make_int2(band * kRasterRows + within % height, within / height);
}

// The tiles of a CTA, in order.
class Tiles {
 public:
  __device__ explicit Tiles(const Arguments& args)
      : args_(args), at_(static_cast<int>(blockIdx.x)) {}
  // False behind the last.
  __device__ bool next() {
    if (at_ >= args_.panels_a * args_.panels_b) return false;
    panel_ = raster(at_, args_.panels_a, args_.panels_b);
    at_ += static_cast<int>(gridDim.x);
    return true;
  }
  __device__ int panel_a() const { return panel_.x; }
  __device__ int panel_b() const { return panel_.y; }
  __device__ std::int64_t number() const {
    return std::int64_t{panel_.x} * args_.panels_b + panel_.y;
  }

 private:
  const Arguments& args_;
  int at_;
  int2 panel_{};
};

// One of the four producer warps.
template <class S>
class Producer {
 public:
  __device__ Producer(const Arguments& args, const typename S::Ring& ring, std::uint32_t* masks,
                      int thread)
      : args_(args), ring_(ring), masks_(masks), warp_(thread / 32), lane_(thread % 32) {}

  __device__ void run() {
    for (Tiles tiles(args_); tiles.next();) load_tile(tiles);
    ptx::cp_async_wait_group<0>();
    for (; unpublished_ > 0; --unpublished_) publish();
  }

 private:
  using Element = typename S::Element;
  static constexpr int kInFlight = 4;  // stages of cp.async
  static constexpr int kBatch = 4;     // stages whose entries are read ahead
  static constexpr int kPieces = S::kStripLine / kCopyBytes;
  static constexpr int kLines = 32 / kPieces;  // that a warp copies at once
  static constexpr int kOwnB = kStripsB / kStripsA;

  __device__ void load_tile(const Tiles& tiles) {
    const int stages = args_.work[tiles.number()].stages;
    const std::uint32_t* const list = args_.lists + tiles.number() * args_.pitch;
    const auto read = [&](std::uint32_t(&entries)[kBatch], int first) {
#pragma unroll
      for (int i = 0; i < kBatch; ++i)
        entries[i] = first + i < stages && lane_ < S::kStageK
                         ? __ldca(list + (first + i) * S::kStageK + lane_)
                         : 0;
    };
    const char* const a =
        static_cast<const char*>(args_.a_lines) +
        (std::int64_t{tiles.panel_a()} * kStripsA + warp_) * args_.k * S::kStripLine +
        lane_ % kPieces * kCopyBytes;
    const int column = tiles.panel_b() * kTileColumns + warp_ * kOwnB * kStrip;
    std::uint32_t now[kBatch], next[kBatch];
    read(next, 0);
    for (int first = 0; first < stages; first += kBatch) {
#pragma unroll
      for (int i = 0; i < kBatch; ++i) now[i] = next[i];
      read(next, first + kBatch);
#pragma unroll 1
      for (int i = 0; i < kBatch && first + i < stages; ++i) {
        std::uint32_t entry = now[0];
#pragma unroll
        for (int j = 1; j < kBatch; ++j)
          if (i == j) entry = now[j];
        load_stage(entry, first + i + 1 == stages, a, column);
      }
    }
  }

  // `entry`: of lane l the l-th of the stage.
  __device__ void load_stage(std::uint32_t entry, bool last, const char* a, int column) {
    const std::uint32_t masks =
        __reduce_or_sync(~0U, entry >> kShiftB << (lane_ < S::kChunkK ? 0 : kStripsB));
    ring_.wait_empty(at_);
    if (warp_ == 0 && lane_ == 0) masks_[at_.stage] = masks | (last ? kLastStage : 0);
    copy_lines(entry, masks, a, column, ring_.stage(at_.stage));
    ptx::cp_async_commit_group();
    ring_.advance(at_);
    if (unpublished_ < kInFlight) {
      ++unpublished_;
    } else {
      ptx::cp_async_wait_group<kInFlight>();
      publish();
    }
  }

  __device__ void copy_lines(std::uint32_t entry, std::uint32_t masks, const char* a, int column,
                             char* stage) const {
    const auto shared = static_cast<std::uint32_t>(__cvta_generic_to_shared(stage));
#pragma unroll
    for (int i = 0; i < S::kStageK / kLines; ++i) {
      const int line = i * kLines + lane_ / kPieces, piece = lane_ % kPieces;
      const std::uint32_t own = __shfl_sync(~0U, entry, line);
      const std::uint32_t k = own & kIndexMask;
      const std::uint32_t place = shared + S::place(line, piece);
      ptx::cp_async_cg_16_if((own >> (kShiftA + warp_) & 1) != 0, place + warp_ * S::kStripBytes,
                             a + std::uint64_t{k} * S::kStripLine);
      const char* const b_row =
          static_cast<const char*>(args_.b) + std::uint64_t{k} * args_.ldb_bytes;
#pragma unroll
      for (int j = 0; j < kOwnB; ++j) {
        const int strip = warp_ * kOwnB + j;
        if ((masks >> (i * kLines / S::kChunkK * kStripsB + strip) & 1) == 0) continue;
        const bool set = (own >> (kShiftB + strip) & 1) != 0;
        const int tile = (kStripsA + strip) * S::kStripBytes;
        if constexpr (S::kTf32) turn(b_row, set, column + j * kStrip, i, stage + tile);
        else {
          const int at = column + j * kStrip + piece * (kCopyBytes / int{sizeof(Element)});
          ptx::cp_async_cg_16_if(set && at < args_.n, place + tile,
                                 b_row + std::int64_t{at} * sizeof(Element));
        }
      }
    }
  }

  // tf32: four k of a strip of B, word by word, since wgmma wants k contiguous. A copy takes 8
  // columns x 4 k: 4 sectors, and a word of every bank.
  __device__ void turn(const char* b_row, bool set, int column, int quad, char* tile) const {
#pragma unroll
    for (int first = 0; first < kStrip; first += 8) {
      const int at = first + lane_ % 8;
      __pipeline_memcpy_async(
          tile + at * (S::kStageK * 4) + ((quad ^ at / 2 % 4) << 4) + lane_ / 8 * 4,
          b_row + std::int64_t{column + at} * 4, 4, set && column + at < args_.n ? 0 : 4);
    }
  }

  __device__ void publish() {
    ring_.publish(publish_at_);
    ring_.advance(publish_at_);
  }

  const Arguments& args_;
  const typename S::Ring& ring_;
  std::uint32_t* masks_;
  int warp_, lane_;
  mbarrier::Cursor at_, publish_at_;
  int unpublished_ = 0;  // groups committed whose arrival on `full` is due
};

// Where a lane finds its part of the fragments of A in a stage.
template <class S>
class FragmentOfA {
 public:
  __device__ FragmentOfA() {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const int tile = warp / 2 * S::kStripBytes;  // a strip for two warps
    if constexpr (S::kTf32) {
      const int k = lane % 4, row = warp % 2 * 16 + lane / 4;
      low_ = tile + S::place(k, row / 4) + row % 4 * 4;
      high_ = tile + S::place(k, row / 4 + 2) + row % 4 * 4;
    } else {
      const int matrix = lane / 8;
      low_ = tile + S::place(matrix / 2 * 8 + lane % 8, warp % 2 * 2 + matrix % 2);
    }
  }
  // Of chunk kChunk.
  template <int kChunk>
  __device__ void load(std::uint32_t (&a)[4], std::uint32_t stage) const {
    constexpr int kAt = kChunk * S::kChunkK * S::kStripLine;
    if constexpr (S::kTf32) {
      constexpr int kFurther = 4 * S::kStripLine;  // 4 of k
      a[0] = ptx::ld_shared<kAt>(stage + low_);
      a[1] = ptx::ld_shared<kAt>(stage + high_);
      a[2] = ptx::ld_shared<kAt + kFurther>(stage + low_);
      a[3] = ptx::ld_shared<kAt + kFurther>(stage + high_);
    } else {
      ptx::ldmatrix_x4_trans(a, stage + low_ + kAt);
    }
  }

 private:
  std::uint32_t low_ = 0, high_ = 0;
};

// The sums of a warpgroup, strip by strip, as wgmma leaves them.
inline constexpr int kSumsOfStrip = kStrip / 2;
using Sums = float[kStripsB * kSumsOfStrip];

// acc += a stage: both chunks, strip by strip.
template <class S>
__device__ void multiply(Sums& acc, const char* stage, std::uint32_t masks,
                         const FragmentOfA<S>& fragment) {
  constexpr int kGroup = 8 * 64;  // bytes of 8 lines
  constexpr int kNextChunk = S::kTf32 ? 32 : S::kChunkK * S::kStripLine;
  const auto shared = static_cast<std::uint32_t>(__cvta_generic_to_shared(stage));
  std::uint32_t a[S::kChunks][4];
  fragment.template load<0>(a[0], shared);
  fragment.template load<1>(a[1], shared);
  const std::uint64_t b =
      ptx::wgmma_descriptor<64>(stage + kStripsA * S::kStripBytes, S::kStripBytes, kGroup);
  ptx::wgmma_fence();
#pragma unroll
  for (int chunk = 0; chunk < S::kChunks; ++chunk)
#pragma unroll
    for (int strip = 0; strip < kStripsB; ++strip)
      ptx::wgmma_mma_async_m64n32_if<typename S::Input>(
          masks >> (chunk * kStripsB + strip) & 1,
          reinterpret_cast<float(&)[kSumsOfStrip]>(acc[strip * kSumsOfStrip]), a[chunk],
          ptx::wgmma_descriptor_advance(b, strip * S::kStripBytes + chunk * kNextChunk));
  ptx::wgmma_commit_group();
  ptx::wgmma_wait_group<0>();
}

// The accumulators of a warpgroup to C from (row, column) on, chunk by chunk through shared memory.
class Store {
 public:
  __device__ Store(const CUtensorMap& map, const Arguments& args, char* staging)
      : map_(map),
        args_(args),
        warpgroup_(static_cast<int>(threadIdx.x) / kWarpgroup),
        chunks_(staging + warpgroup_ * kStagingChunks * tile_store::kChunkBytes),
        leader_(threadIdx.x % kWarpgroup == 0) {}

  __device__ void store(const Sums& acc, int row, int column) {
    row += warpgroup_ * kWarpgroupRows;
    if (args_.type_c == ElementType::f32) store_as<true>(acc, row, column);
    else store_as<false>(acc, row, column);
  }
  // Before the CTA ends: its shared memory must outlive the copies.
  __device__ void finish() const {
    if (leader_) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }

 private:
  template <bool kWide>
  __device__ void store_as(const Sums& acc, int row, int column) {
    constexpr int kColumns = tile_store::kColumns<kWide>;
#pragma unroll
    for (int first = 0; first < kTileColumns; first += kColumns) {
      if (column + first >= args_.n) return;
      char* const chunk = chunks_ + first / kColumns % kStagingChunks * tile_store::kChunkBytes;
      if (leader_) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<kStagingChunks - 1>());
      __barrier_sync_count(1 + warpgroup_, kWarpgroup);
      tile_store::write_chunk<kWide, Layout::row_major>(acc + first / 2, chunk, args_.type_c);
      ptx::fence_proxy_async(ptx::space_shared);
      __barrier_sync_count(1 + warpgroup_, kWarpgroup);
      if (!leader_) continue;
      tile_store::copy_chunk<kWide, Layout::row_major>(map_, chunk, row, column + first);
      ptx::cp_async_bulk_commit_group();
    }
  }

  const CUtensorMap& map_;
  const Arguments& args_;
  int warpgroup_;
  char* chunks_;
  bool leader_;
};

template <class S>
__global__ void __launch_bounds__(S::kThreads, 1)
    multiply_lists(const __grid_constant__ Arguments args,
                   const __grid_constant__ CUtensorMap map_c) {
  extern __shared__ __align__(1024) char shared[];
  static_assert(sizeof(Front<S>) <= kFrontBytes);
  auto& front = *reinterpret_cast<Front<S>*>(shared);
  const typename S::Ring ring(front.barriers, shared + kFrontBytes + kStagingBytes);
  ring.start(S::kProducers, S::kConsumers / 32);
  with_roles<S::kConsumers, S::kRoleRegisters>(
      [&](int thread) {
        ptx::griddepcontrol_wait();
        Producer<S>(args, ring, front.masks, thread).run();
      },
      [&] {
        ptx::griddepcontrol_wait();
        Store store(map_c, args, shared + kFrontBytes);
        const FragmentOfA<S> fragment;
        mbarrier::Cursor at;
        for (Tiles tiles(args); tiles.next();) {
          Sums acc;
#pragma unroll
          for (float& value : acc) value = 0;
          std::uint32_t masks;
          do {
            ring.wait_full(at);
            masks = __shfl_sync(~0U, front.masks[at.stage], 0);
            multiply<S>(acc, ring.stage(at.stage), masks, fragment);
            ring.release(at.stage);
            ring.advance(at);
          } while ((masks & kLastStage) == 0);
          ptx::keep_in_registers(acc);
          store.store(acc, tiles.panel_a() * kTileRows, tiles.panel_b() * kTileColumns);
        }
        store.finish();
      });
}

}  // namespace spmmbench::esmm_mma
