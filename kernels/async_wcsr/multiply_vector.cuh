#pragma once
// Windows whose tiles are dense boxes, times a vector (N = 1). One value of B per column is too
// little to be copied ahead through shared memory, so a warp multiplies eight tiles of its span at
// once, from registers. Lane 4g + t gathers the values of B for columns 4t .. 4t + 3 of tile g, so
// that every value is gathered once, and all of them in four loads. The product is C^T = B^T * A^T
// as in window/multiply.cuh. For tile j, row j of mma's first operand is the values of that tile,
// and the other rows are zeros:
//
//              first operand, 16 x 16                   D, 16 x 8
//   tile 0     row 0: values of B                       row 0: sums of tile 0
//   tile 1                row 1: values of B            row 1: sums of tile 1
//
// So one set of accumulators serves all of them, and a row of a window is the sum of a column of D.

#include <cstdint>
#include <type_traits>

#include "ptx/griddepcontrol.cuh"
#include "ptx/ld_global.cuh"
#include "ptx/mma.cuh"
#include "window/multiply.cuh"
#include "window/stage.cuh"

namespace spmmbench::wcsr {

constexpr int kTilesAtOnce = 8;  // as many as a warp has groups of four lanes

// Values of B or of a row of A for columns 4t .. 4t + 3 of a tile.
template <class Input>
using FourValues = std::conditional_t<window::kInputBytes<Input> == 4, uint4, uint2>;

template <class Input, int kWindowRows>
class VectorSums {
  static constexpr int kMmaN = kWindowRows / 8;

 public:
  static constexpr int kVectors = kMmaN;  // float4 per lane

  __device__ VectorSums() { clear(); }

  __device__ void clear() {
#pragma unroll
    for (int r = 0; r < kMmaN; ++r)
#pragma unroll
      for (float& sum : d_[r]) sum = 0;
  }

  __device__ auto& all() { return reinterpret_cast<float(&)[kMmaN * 4]>(d_); }

  // visit(index, four sums) for all of them, in a fixed order.
  template <class Visit>
  __device__ void for_each_four(Visit visit) {
#pragma unroll
    for (int r = 0; r < kMmaN; ++r) visit(r, d_[r]);
  }

  // `b`: zeros in the lanes that hold values of other tiles.
  __device__ void add(const FourValues<Input>& b, const window::Fragment<Input, kWindowRows>& a) {
#pragma unroll
    for (int r = 0; r < kMmaN; ++r) {
      if constexpr (window::kInputBytes<Input> == 4) {
        ptx::mma_m16n8k8(Input{}, d_[r], b.x, 0, b.y, 0, a.x[r].x, a.x[r].y);
        ptx::mma_m16n8k8(Input{}, d_[r], b.z, 0, b.w, 0, a.x[r].z, a.x[r].w);
      } else {
        ptx::mma_m16n8k16(Input{}, d_[r], b.x, 0, b.y, 0, a.x[r].x, a.x[r].y);
      }
    }
  }

  // The sum of the window's row `lane`, in the lanes that have one.
  __device__ float of_row(unsigned lane) const {
    float out = 0;
#pragma unroll
    for (int r = 0; r < kMmaN; ++r) {
      const float even = of_column(d_[r][0], lane), odd = of_column(d_[r][1], lane);
      if (static_cast<int>(lane / 8) == r) out = lane % 2 == 0 ? even : odd;
    }
    return out;
  }

 private:
  // Of column pair lane % 8 / 2: the sum over mma's rows.
  __device__ static float of_column(float x, unsigned lane) {
#pragma unroll
    for (int groups = 4; groups < 32; groups *= 2)
      x += __shfl_xor_sync(window::kFullWarp, x, groups);
    return __shfl_sync(window::kFullWarp, x, lane % 8 / 2);
  }

  float d_[kMmaN][4];
};

// The boxes of the next tiles of a span, in registers.
template <class Input, int kWindowRows>
class BoxReader {
  using Four = FourValues<Input>;
  static constexpr int kMmaN = kWindowRows / 8;
  static constexpr int kBoxBytes = kWindowRows * window::kTileColumns * window::kInputBytes<Input>;

 public:
  static constexpr int kRegisters = 16;  // a lane's, 4 bytes (docs/decisions/window-cuts.md)
  static constexpr int kAhead = kRegisters * 4 * 32 / kBoxBytes;  // tiles that are read at once
  static_assert(kTilesAtOnce % kAhead == 0);

  __device__ BoxReader(const void* boxes, const TileSpan& span, int tiles, unsigned lane)
      : from_(static_cast<const char*>(boxes) + std::int64_t{span.first_tile} * kBoxBytes +
              lane * sizeof(Four)),
        tiles_(tiles) {}

  // Tiles i .. i + kAhead - 1, as many of them as there are.
  __device__ void read(int i) {
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      if (i + j >= tiles_) return;
#pragma unroll
      for (int r = 0; r < kMmaN; ++r)
        boxes_[j].x[r] = load(from_ + (i + j) * kBoxBytes + r * 32 * sizeof(Four));
    }
  }
  __device__ const window::Fragment<Input, kWindowRows>& operator[](int j) const {
    return boxes_[j];
  }

 private:
  __device__ static Four load(const char* from) {
    if constexpr (sizeof(Four) == 16) return ptx::ld_global_nc_no_allocate_v4(from);
    else return ptx::ld_global_nc_no_allocate_v2(from);
  }

  const char* from_;
  int tiles_;
  window::Fragment<Input, kWindowRows> boxes_[kAhead];
};

// The values of B for four columns; zeros for negative columns, which fill up a tile. Not by __ldg,
// since the previous launch may still write B.
template <class Input>
__device__ FourValues<Input> gather(const int4& columns, const void* b, std::uint32_t row_bytes) {
  const auto value = [&](std::int32_t column) -> std::uint32_t {
    if (column < 0) return 0;
    const char* from =
        static_cast<const char*>(b) + std::uint64_t{static_cast<std::uint32_t>(column)} * row_bytes;
    if constexpr (window::kInputBytes<Input> == 4)
      return __ldca(reinterpret_cast<const std::uint32_t*>(from));
    else return __ldca(reinterpret_cast<const std::uint16_t*>(from));
  };
  const std::uint32_t x = value(columns.x), y = value(columns.y), z = value(columns.z),
                      w = value(columns.w);
  if constexpr (window::kInputBytes<Input> == 4) return {x, y, z, w};
  else return {x | y << 16, z | w << 16};
}

// CTA: (32, 1, team); grid: CTAs of the work list. `shared`: the sums of a warp for each.
template <class Input, class C, int kWindowRows>
__device__ void multiply_vector(const window::Arguments& in, const void* boxes,
                                unsigned char* shared) {
  using Reader = BoxReader<Input, kWindowRows>;
  const unsigned lane = threadIdx.x;
  const int member = threadIdx.z;
  const TileSpan span = in.spans[static_cast<std::int64_t>(blockIdx.x) * blockDim.z + member];
  const int tiles = window::tiles_of(span);
  window::SpanWindows<kWindowRows> windows(in, span, lane);
  Reader a(boxes, span, tiles, lane);
  a.read(0);
  const auto* const col_idx = reinterpret_cast<const int4*>(
      in.col_idx + std::int64_t{span.first_tile} * window::kTileColumns);
  const auto columns_of = [&](int first) {
    return first + static_cast<int>(lane / 4) < tiles ? __ldg(col_idx + first * 4 + lane)
                                                      : make_int4(-1, -1, -1, -1);
  };
  int4 columns = columns_of(0);
  ptx::griddepcontrol_wait();
  if (in.release_early) ptx::griddepcontrol_launch_dependents();

  VectorSums<Input, kWindowRows> sums;
  const auto store = [&] {
    const float sum = sums.of_row(lane);
    if (windows.row_of_c() >= 0)
      static_cast<C*>(in.c)[std::int64_t{windows.row_of_c()} * in.ldc] = from_float<C>(sum);
  };
  for (int first = 0; first < tiles; first += kTilesAtOnce) {
    const FourValues<Input> b = gather<Input>(columns, in.b, in.b_row_bytes);
    columns = columns_of(first + kTilesAtOnce);
#pragma unroll
    for (int j = 0; j < kTilesAtOnce; ++j) {
      const int i = first + j;
      if (i >= tiles) break;
      const bool own = static_cast<int>(lane / 4) == j;
      sums.add(own ? b : FourValues<Input>{}, a[j % Reader::kAhead]);
      if (j % Reader::kAhead == Reader::kAhead - 1) a.read(i + 1);
      if (windows.end_with(i)) {
        store();
        sums.clear();
        windows.next();
      }
    }
  }
  ptx::griddepcontrol_launch_dependents();
  if (!window::is_shared(span)) return;
  const auto part_of = [&](int m) { return shared + m * sizeof(sums) * 32; };
  if (window::sums_of_shared<decltype(sums)::kVectors>(in, span, 0, 1, part_of, sums)) store();
}

}  // namespace spmmbench::wcsr
