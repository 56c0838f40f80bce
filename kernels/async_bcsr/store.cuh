#pragma once
// Accumulators of one warpgroup to C, chunk by chunk, by TMA (common/tile_store.cuh).

#include "async_bcsr/shape.cuh"
#include "common/tile_store.cuh"
#include "ptx/cuda_ptx.cuh"

namespace spmmbench::async_bcsr {

// The staging buffers of one consumer warpgroup.
template <class S>
class Store {
 public:
  __device__ Store(const CUtensorMap& map, const Arguments& args, char* staging, int consumer)
      : map_(map),
        args_(args),
        chunks_(staging + consumer * S::kChunks * kTileBytes),
        barrier_(1 + consumer),
        leader_(threadIdx.x % kWarpgroup == 0) {}

  // acc: 64 x kCount * 2 of C from (row0, n0).
  template <int kCount>
  __device__ void store(const float (&acc)[kCount], int row0, int n0) {
    tile_store::with_kind(args_.type_c, args_.layout_c, [&]<bool kWide, Layout kLayout>() {
      store_as<kWide, kLayout>(acc, row0, n0);
    });
  }
  // Called before the CTA ends: its shared memory must outlive the reads.
  __device__ void finish() {
    if (leader_) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }

 private:
  static_assert(tile_store::kChunkBytes == kTileBytes);

  template <bool kWide, Layout kLayout, int kCount>
  __device__ void store_as(const float (&acc)[kCount], int row0, int n0) {
    constexpr int kColumns = tile_store::kColumns<kWide>;
#pragma unroll
    for (int first = 0; first < kCount * 2; first += kColumns) {
      const int n = n0 + first;
      if (n >= args_.columns_c) return;
      char* const chunk = chunks_ + next_ * kTileBytes;
      next_ = next_ + 1 == S::kChunks ? 0 : next_ + 1;
      if (leader_) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<S::kChunks - 1>());
      __barrier_sync_count(barrier_, kWarpgroup);
      tile_store::write_chunk<kWide, kLayout>(acc + first / 2, chunk, args_.type_c);
      ptx::fence_proxy_async(ptx::space_shared);
      __barrier_sync_count(barrier_, kWarpgroup);
      if (leader_) {
        tile_store::copy_chunk<kWide, kLayout>(map_, chunk, row0, n);
        ptx::cp_async_bulk_commit_group();
      }
    }
  }

  const CUtensorMap& map_;
  const Arguments& args_;
  char* chunks_;
  int barrier_;
  bool leader_;
  int next_ = 0;
};

}  // namespace spmmbench::async_bcsr
