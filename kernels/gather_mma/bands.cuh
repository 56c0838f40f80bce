#pragma once
// gather_mma in one kernel, where rows are cut into bands (gather_mma/format.hpp). A cluster of
// blocks multiplies a band, each a chunk of k:
//
//   block     sums of its pieces -> shared memory
//             a row's sums, added in the order of its pieces -> the block that owns the row
//   owner     the blocks' sums of its rows, added in the order of chunks, times the scale -> C
//
// The block's rows of B lie in front of all that.

#include "common/mbarrier.cuh"
#include "gather_mma/device.cuh"
#include "gather_mma/device_build.hpp"
#include "ptx/cluster.cuh"
#include "ptx/cp_async.cuh"
#include "ptx/cuda_ptx.cuh"

namespace spmmbench::gather_mma {

// In the shared memory of a block, in bytes. All blocks of a launch have the same.
struct BandLayout {
  int sums;       // [piece][row of the slice][column]
  int inbox;      // [block of the cluster][own row][column]
  int row_parts;  // [row of the band]
  int received;   // a barrier
  int bytes;
};

struct BandArguments {
  const RowParts* row_parts;         // [chunk][row]
  std::int32_t band_rows, own_rows;  // of a band; of a block
  BandLayout at;
  float scale;
};

// `b_bytes`: of B in shared memory.
inline BandLayout band_layout(std::int64_t b_bytes, int planes, std::int64_t pieces,
                              std::int64_t band_rows, std::int64_t chunks) {
  const auto row_bytes = static_cast<std::int64_t>(planes * kPlaneColumns * sizeof(float));
  const std::int64_t own_rows = (band_rows + chunks - 1) / chunks;
  const std::int64_t sums = b_bytes;
  const std::int64_t inbox = sums + pieces * Streams::kRows * row_bytes;
  const std::int64_t row_parts = inbox + (chunks > 1 ? chunks * own_rows * row_bytes : 0);
  constexpr std::int64_t kBarrierBytes = sizeof(std::uint64_t);
  const std::int64_t received =
      (row_parts + band_rows * std::int64_t{sizeof(RowParts)} + kBarrierBytes - 1) / kBarrierBytes *
      kBarrierBytes;
  return {static_cast<int>(sums), static_cast<int>(inbox), static_cast<int>(row_parts),
          static_cast<int>(received), static_cast<int>(received + kBarrierBytes)};
}

// Four columns of a row of C.
template <class T>
__device__ void store_four(const DenseView& c, std::int64_t row, std::int64_t column,
                           const float4& four) {
  const std::int64_t down = c.layout == Layout::row_major ? c.ld : 1;
  const std::int64_t right = c.layout == Layout::row_major ? 1 : c.ld;
  T* const to = static_cast<T*>(c.data) + row * down + column * right;
  const float values[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
  for (int j = 0; j < 4; ++j)
    if (column + j < c.cols) to[j * right] = from_float<T>(values[j]);
}
__device__ inline void store_scaled(const DenseView& c, std::int64_t row, std::int64_t column,
                                    float4 sum, float scale) {
  sum = make_float4(scale * sum.x, scale * sum.y, scale * sum.z, scale * sum.w);
  switch (c.type) {
    case ElementType::f32: store_four<float>(c, row, column, sum); break;
    case ElementType::f16: store_four<__half>(c, row, column, sum); break;
    case ElementType::bf16: store_four<__nv_bfloat16>(c, row, column, sum); break;
    default: break;  // not among the kernel's
  }
}
__device__ inline void add_to(float4& sum, const float4& x) {
  sum = make_float4(sum.x + x.x, sum.y + x.y, sum.z + x.z, sum.w + x.w);
}

// The rows of C of a block's band, and its place in the cluster.
template <int kPlanes>
class Band {
  static constexpr int kColumns = kPlanes * kPlaneColumns;
  static constexpr int kRowThreads = kThreads / (kColumns / 4);  // with the same four columns

 public:
  __device__ Band(const BandArguments& args, const DenseView& c, char* shared)
      : args_(args),
        c_(c),
        shared_(shared),
        blocks_(static_cast<int>(ptx::cluster_size())),
        rank_(static_cast<int>(blocks_ > 1 ? blockIdx.x % unsigned(blocks_) : 0)),
        first_row_(std::int64_t{blocks_ > 1 ? blockIdx.x / unsigned(blocks_) : blockIdx.x} *
                   args.band_rows),
        rows_(static_cast<int>(min(c.rows - first_row_, std::int64_t{args.band_rows}))),
        own_rows_(max(0, min(args.own_rows, rows_ - rank_ * args.own_rows))) {}

  // Before the predecessor has ended. A barrier of all threads must follow.
  __device__ void begin() const {
    const RowParts* const from = args_.row_parts + rank_ * c_.rows + first_row_;
    const auto to = static_cast<std::uint32_t>(__cvta_generic_to_shared(row_parts()));
    constexpr int kBytes = sizeof(RowParts);
#pragma unroll 1
    for (int row = threadIdx.x; row < rows_; row += kThreads)
      ptx::cp_async_ca<kBytes>(to + row * kBytes, from + row);
    ptx::cp_async_commit_group();
    if (blocks_ == 1) return;
    if (threadIdx.x == 0) {
      mbarrier::init(received(), 1, 1);
      ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
      mbarrier::arrive_expect(received(), blocks_ * own_rows_ * kColumns * sizeof(float));
    }
    ptx::cluster_arrive_relaxed();  // before others write here, the barrier must be ready
  }
  __device__ float* sums() const { return reinterpret_cast<float*>(shared_ + args_.at.sums); }

  // When all pieces' sums are in shared memory.
  __device__ void join() const {
    if (blocks_ > 1) ptx::cluster_wait();
    ptx::cp_async_wait_group<0>();
    __syncthreads();
    const std::int64_t first_column = blockIdx.y * std::int64_t{kColumns};
    const int column = threadIdx.x / kRowThreads * 4;
    for (int row = threadIdx.x % kRowThreads; row < rows_; row += kRowThreads) {
      const float4 sum = sum_of_pieces(row, column);
      if (blocks_ > 1) send(row, column, sum);
      else store_scaled(c_, first_row_ + row, first_column + column, sum, args_.scale);
    }
    if (blocks_ == 1) return;
    mbarrier::wait(received(), 0);
    for (int row = threadIdx.x % kRowThreads; row < own_rows_; row += kRowThreads) {
      float4 sum{};
      for (int block = 0; block < blocks_; ++block)
        add_to(sum, *reinterpret_cast<const float4*>(shared_ + inbox_at(block, row, column)));
      store_scaled(c_, first_row_ + rank_ * args_.own_rows + row, first_column + column, sum,
                   args_.scale);
    }
  }

 private:
  __device__ RowParts* row_parts() const {
    return reinterpret_cast<RowParts*>(shared_ + args_.at.row_parts);
  }
  __device__ std::uint64_t* received() const {
    return reinterpret_cast<std::uint64_t*>(shared_ + args_.at.received);
  }
  __device__ int inbox_at(int block, int row, int column) const {
    return args_.at.inbox +
           ((block * args_.own_rows + row) * kColumns + column) * int{sizeof(float)};
  }
  __device__ float4 sum_of_pieces(int row, int column) const {
    const RowParts parts = row_parts()[row];
    const float* const from = sums() + parts.first * kColumns + column;
    float4 sum{};
    for (int p = 0; p < parts.count; ++p)
      add_to(sum, *reinterpret_cast<const float4*>(from + p * Streams::kRows * kColumns));
    return sum;
  }
  __device__ void send(int row, int column, const float4& sum) const {
    const auto base = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared_));
    const unsigned owner = row / args_.own_rows;
    const float values[4] = {sum.x, sum.y, sum.z, sum.w};
    ptx::st_async(ptx::map_to_cta(base + inbox_at(rank_, row % args_.own_rows, column), owner),
                  values, ptx::map_to_cta(base + args_.at.received, owner));
  }

  const BandArguments& args_;
  const DenseView& c_;
  char* shared_;
  int blocks_, rank_;
  std::int64_t first_row_;
  int rows_, own_rows_;
};

template <class T, int kPlanes, int kEights>
__global__ void __launch_bounds__(kThreads, 1)
    multiply_bands(const __grid_constant__ Arguments args,
                   const __grid_constant__ BandArguments of_bands,
                   const __grid_constant__ DenseView b, const __grid_constant__ DenseView c) {
  extern __shared__ __align__(128) char shared[];
  ptx::griddepcontrol_launch_dependents();
  const std::int32_t first_piece = args.ranges[std::int64_t{blockIdx.x} * kWarps].first_piece;
  Share<T, kPlanes, kEights> share(args);
  const Band<kPlanes> band(of_bands, c, shared);
  band.begin();
  share.load_b(b, shared);
  share.multiply(shared, band.sums(), first_piece);
  band.join();
}

}  // namespace spmmbench::gather_mma
