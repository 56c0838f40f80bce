#pragma once
// Accumulators of one warpgroup to C, by way of shared memory: TMA stores whole lines and clips at
// the edges of C while the warpgroup goes on.
//
// A chunk is 64 rows x 128 bytes of columns, as 64 lines of 128 bytes in the 128-byte swizzle:
//   row-major             line r           row r
//   column-major, 16 bit  line c           column c, 64 rows
//   column-major, fp32    line 32h + c     column c, rows 32h .. 32h + 31
// No two lanes of a warp (of a half warp for 8-byte stores) write to the same bank.

#include "async_bcsr/shape.cuh"
#include "ptx/cuda_ptx.cuh"

namespace spmmbench::async_bcsr {

inline constexpr int kBoxLines = 32;

__device__ inline std::uint32_t pack16(float low, float high, ElementType type) {
  switch (type) {
    case ElementType::f16: {
      const __half2 both = __floats2half2_rn(low, high);
      return reinterpret_cast<const std::uint32_t&>(both);
    }
    case ElementType::bf16: {
      const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
      return reinterpret_cast<const std::uint32_t&>(both);
    }
    case ElementType::f32: break;  // never packed
  }
  __builtin_unreachable();
}

// One chunk. d[4j ..]: the accumulators of its column tile j.
template <bool kWide, Layout kLayout>
__device__ void write_chunk(const float* d, char* chunk, ElementType type) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int warp = threadIdx.x % kWarpgroup / 32;
  const bool odd = g % 2 != 0;
  const auto put = [&](int line, int byte, auto value) {
    *reinterpret_cast<decltype(value)*>(chunk + line * kLineBytes + (byte ^ (line % 8) << 4)) =
        value;
  };
#pragma unroll
  for (int j = 0; j < (kWide ? 4 : 8); ++j)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = warp * 16 + half * 8 + g;
      const float *const own = d + 4 * j + 2 * half, *const far = d + 4 * (j ^ 2) + 2 * half;
      if constexpr (kWide && kLayout == Layout::row_major) {
        // Odd rows store the tile after the next: two rows of one tile would share banks.
        put(row, (odd ? j ^ 2 : j) * 32 + t * 8,
            odd ? make_float2(far[0], far[1]) : make_float2(own[0], own[1]));
      } else if constexpr (kWide) {
#pragma unroll
        for (int i = 0; i < 2; ++i) put(row / 32 * 32 + 8 * j + 2 * t + i, row % 32 * 4, own[i]);
      } else if constexpr (kLayout == Layout::row_major) {
        put(row, j * 16 + t * 4, pack16(own[0], own[1], type));
      } else {
        // Lanes of rows g, g ^ 1 exchange: each ends with one column of both.
        const float other = __shfl_xor_sync(~0U, odd ? own[0] : own[1], 4);
        put(8 * j + 2 * t + (odd ? 1 : 0), row / 2 * 4,
            odd ? pack16(other, own[1], type) : pack16(own[0], other, type));
      }
    }
}

// The staging buffers of one consumer warpgroup.
template <class S>
class Store {
 public:
  __device__ Store(const CUtensorMap& map, const Arguments& args, const Ring& ring, int consumer)
      : map_(map),
        args_(args),
        chunks_(ring.staging + consumer * S::kChunks * kTileBytes),
        barrier_(1 + consumer),
        leader_(threadIdx.x % kWarpgroup == 0) {}

  // acc: 64 x kCount * 2 of C from (row0, n0).
  template <int kCount>
  __device__ void store(const float (&acc)[kCount], int row0, int n0) {
    const bool rows = args_.layout_c == Layout::row_major;
    if (args_.type_c == ElementType::f32) {
      if (rows) store_as<true, Layout::row_major>(acc, row0, n0);
      else store_as<true, Layout::col_major>(acc, row0, n0);
    } else {
      if (rows) store_as<false, Layout::row_major>(acc, row0, n0);
      else store_as<false, Layout::col_major>(acc, row0, n0);
    }
  }
  // Called before the CTA ends: its shared memory must outlive the reads.
  __device__ void finish() {
    if (leader_) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }

 private:
  template <bool kWide, Layout kLayout, int kCount>
  __device__ void store_as(const float (&acc)[kCount], int row0, int n0) {
    constexpr int kColumns = kWide ? 32 : 64;
#pragma unroll
    for (int first = 0; first < kCount * 2; first += kColumns) {
      const int n = n0 + first;
      if (n >= args_.columns_c) return;
      char* const chunk = chunks_ + next_ * kTileBytes;
      next_ = next_ + 1 == S::kChunks ? 0 : next_ + 1;
      if (leader_) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<S::kChunks - 1>());
      __barrier_sync_count(barrier_, kWarpgroup);
      write_chunk<kWide, kLayout>(acc + first / 2, chunk, args_.type_c);
      ptx::fence_proxy_async(ptx::space_shared);
      __barrier_sync_count(barrier_, kWarpgroup);
      if (leader_) {
#pragma unroll
        for (int box = 0; box < kUnitRows; box += kBoxLines) {
          const std::int32_t at[2] = {
              kLayout == Layout::row_major ? n : row0 + (kWide ? box : 0),
              kLayout == Layout::row_major ? row0 + box : n + (kWide ? 0 : box)};
          ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &map_, at,
                                    chunk + box * kLineBytes);
        }
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
