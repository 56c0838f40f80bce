#pragma once
// The device side of gather_mma.
//
//   block: 16 warps, one chunk of B's columns of k at a time
//     shared memory: the chunk's rows of B, 16 bytes (8 columns) each, one or two planes of them;
//                    per warp a ring of quads (format/slot_streams.hpp), copied in bulk
//     warp, per step of 32 nonzeros:
//       lane l:   address of slot l's row of B += move                     (1 dot product of bytes)
//       ldmatrix: 32 rows of B -> the B operands of two mma
//       A operands: 2 nonzeros each in 8 lanes, zeros elsewhere
//       2 mma: even rows, odd rows of the slice
//   piece of a slice: its 16 rows' sums go to the workspace; add_parts adds up each row's pieces

#include <cstdint>

#include "common/bulk_ring.cuh"
#include "format/slot_streams.hpp"
#include "gpu/element.cuh"
#include "ptx/cuda_ptx.cuh"
#include "ptx/griddepcontrol.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/mma.cuh"
#include "spmmbench/device.hpp"

namespace spmmbench::gather_mma {

using Streams = SlotStreams;
inline constexpr int kWarps = 16;
inline constexpr int kThreads = 32 * kWarps;
inline constexpr int kQuadBytes = Streams::kQuadWords * 4;
inline constexpr int kUnitQuads = 4;  // copied together
inline constexpr int kUnitBytes = kUnitQuads * kQuadBytes;
inline constexpr int kRingUnits = 4;
inline constexpr int kBarrierBytes = 1024;
inline constexpr int kBAt = kBarrierBytes + kWarps * kRingUnits * kUnitBytes;
inline constexpr int kRowBytes = 16;  // of B and a plane
inline constexpr int kPlaneColumns = 8;
inline constexpr int kPlaneBytes = Streams::kMostChunk * kRowBytes;
constexpr int shared_bytes(int planes) { return kBAt + planes * kPlaneBytes; }
static_assert(shared_bytes(2) <= 232448, "227 KB a block");

struct Arguments {
  const std::int32_t* phase_ptr;    // of a block
  const std::int32_t* phase_chunk;  // of a phase
  const Streams::Range* ranges;     // [phase][warp]
  const Streams::Piece* pieces;
  const std::uint16_t* starts;  // [piece][slot]
  const std::uint32_t* words;
  std::int64_t piece_count;
  std::int32_t chunk_cols;
  float* partial;  // [tile of columns][piece][row][column]
};

// A warp's quads, in order.
class QuadReader {
 public:
  __device__ QuadReader(char* ring, std::uint64_t* full) : ring_(ring, full) {}

  __device__ void begin(const Arguments& args, const Streams::Range& range) {
    ring_.begin(reinterpret_cast<const char*>(args.words) + range.first_quad * kQuadBytes,
                range.quads * std::int64_t{kQuadBytes});
    in_unit_ = 0;
    for (int unit = 0; unit < kRingUnits; ++unit) request();
  }
  // The next quads, as many as lie together.
  __device__ const char* quads(int& count) {
    if (in_unit_ == 0) unit_ = ring_.next();
    count = kUnitQuads - in_unit_;
    return unit_ + in_unit_ * kQuadBytes;
  }
  // That many quads were read. `last`: of the range.
  __device__ void release(int count, bool last) {
    in_unit_ += count;
    if (in_unit_ < kUnitQuads && !last) return;
    in_unit_ = 0;
    __syncwarp();
    request();
  }

 private:
  __device__ void request() { ring_.request(threadIdx.x % 32 == 0); }

  BulkRing<kRingUnits, kUnitBytes, std::int64_t> ring_;
  const char* unit_ = nullptr;  // the one that is read
  int in_unit_ = 0;             // its quads that were read
};

// Rows first .. first + count of B's columns column .. column + 8 * kPlanes; zeros up to the next
// multiple of 8 rows, which zeros of A may name. Columns past the last hold anything.
template <int kPlanes>
__device__ void load_rows(const DenseView& b, std::int64_t first, std::int64_t column,
                          std::int32_t chunk_cols, char* to) {
  const auto* const from = static_cast<const std::uint16_t*>(b.data);
  const auto count = static_cast<int>(min(b.rows - first, std::int64_t{chunk_cols}));
  const int padded = (count + 7) / 8 * 8;
  if (b.layout == Layout::row_major) {
#pragma unroll 4
    for (int i = threadIdx.x; i < padded * kPlanes; i += kThreads) {
      const int k = i / kPlanes, plane = i % kPlanes;
      uint4 row = make_uint4(0, 0, 0, 0);
      if (k < count && column + plane * kPlaneColumns < b.cols)
        row = *reinterpret_cast<const uint4*>(from + (first + k) * b.ld + column +
                                              plane * kPlaneColumns);
      *reinterpret_cast<uint4*>(to + plane * kPlaneBytes + k * kRowBytes) = row;
    }
    return;
  }
#pragma unroll 4
  for (int i = threadIdx.x; i < padded / 2 * kPlanes; i += kThreads) {
    const int k = i % (padded / 2) * 2, plane = i / (padded / 2);
    std::uint32_t pair[kPlaneColumns];  // rows k and k + 1 of a column
#pragma unroll
    for (int j = 0; j < kPlaneColumns; ++j) {
      const std::int64_t n = column + plane * kPlaneColumns + j;
      pair[j] = 0;
      if (n < b.cols && k < count)
        pair[j] = *reinterpret_cast<const std::uint32_t*>(from + n * b.ld + first + k);
      if (k + 1 == count) pair[j] &= 0xFFFFU;
    }
    auto* const rows = reinterpret_cast<uint4*>(to + plane * kPlaneBytes + k * kRowBytes);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const unsigned half = r == 0 ? 0x5410 : 0x7632;
      rows[r] =
          make_uint4(__byte_perm(pair[0], pair[1], half), __byte_perm(pair[2], pair[3], half),
                     __byte_perm(pair[4], pair[5], half), __byte_perm(pair[6], pair[7], half));
    }
  }
}

// A lane's part in the A operands: lane 4g + g / 2 holds the nonzeros of rows g and g + 8.
struct LaneRole {
  bool holds;
  std::uint32_t even, odd;  // all ones in the lanes that hold even and odd rows
  __device__ LaneRole() {
    const int lane = threadIdx.x % 32, g = lane / 4;
    holds = lane % 4 == g / 2;
    even = holds && g % 2 == 0 ? ~0U : 0;
    odd = holds && g % 2 == 1 ? ~0U : 0;
  }
};

// `values`, of two steps each, stay zero in lanes that hold none.
template <class T, int kPlanes>
__device__ void multiply_quad(float (&even)[kPlanes][4], float (&odd)[kPlanes][4],
                              std::uint32_t& row_of_b, const char* quad, const LaneRole& role,
                              uint4 (&values)[2]) {
  const int lane = threadIdx.x % 32;
  const std::uint32_t moves = reinterpret_cast<const std::uint32_t*>(quad)[lane];
  if (role.holds) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
      values[i] = reinterpret_cast<const uint4*>(quad + Streams::kMoveWords * 4)[i * 8 + lane / 4];
  }
#pragma unroll
  for (int step = 0; step < Streams::kQuadSteps; ++step) {
    row_of_b = __dp4a(moves, std::uint32_t{kRowBytes} << (8 * step), row_of_b);
    const uint4& pair = values[step / 2];
    const std::uint32_t low = step % 2 == 0 ? pair.x : pair.z;   // row g
    const std::uint32_t high = step % 2 == 0 ? pair.y : pair.w;  // row g + 8
#pragma unroll
    for (int plane = 0; plane < kPlanes; ++plane) {
      std::uint32_t b[4];
      ptx::ldmatrix_x4_trans(
          b, row_of_b + plane * kPlaneBytes - (step + 1) * Streams::kMostBackward * kRowBytes);
      ptx::mma_m16n8k16(T{}, even[plane], low & role.even, 0, 0, high & role.even, b[0], b[1]);
      ptx::mma_m16n8k16(T{}, odd[plane], low & role.odd, 0, 0, high & role.odd, b[2], b[3]);
    }
  }
  row_of_b -= Streams::kQuadSteps * Streams::kMostBackward * kRowBytes;
}

template <class T, int kPlanes>
__global__ void __launch_bounds__(kThreads, 1)
    multiply(const __grid_constant__ Arguments args, const __grid_constant__ DenseView b) {
  extern __shared__ __align__(128) char shared[];
  constexpr int kColumns = kPlanes * kPlaneColumns;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  auto* const barriers = reinterpret_cast<std::uint64_t*>(shared);
  if (threadIdx.x == 0) {
    mbarrier::init(barriers, kWarps * kRingUnits, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  ptx::griddepcontrol_launch_dependents();
  QuadReader reader(shared + kBarrierBytes + warp * kRingUnits * kUnitBytes,
                    barriers + warp * kRingUnits);
  const LaneRole role;
  const auto rows = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared + kBAt));
  const int last_phase = args.phase_ptr[blockIdx.x + 1];
  for (int phase = args.phase_ptr[blockIdx.x]; phase < last_phase; ++phase) {
    const Streams::Range range = args.ranges[phase * kWarps + warp];
    reader.begin(args, range);
    if (phase == args.phase_ptr[blockIdx.x]) ptx::griddepcontrol_wait();
    else __syncthreads();  // the last phase's rows were read
    load_rows<kPlanes>(b, std::int64_t{args.phase_chunk[phase]} * args.chunk_cols,
                       std::int64_t{blockIdx.y} * kColumns, args.chunk_cols, shared + kBAt);
    __syncthreads();
    // The next piece is looked up while this one is multiplied.
    Streams::Piece next{};
    std::uint32_t next_start = 0;
    const auto look_up = [&](std::int64_t piece) {
      next = args.pieces[piece];
      next_start = args.starts[piece * Streams::kSlots + lane];
    };
    if (range.pieces > 0) look_up(range.first_piece);
    int quads_left = range.quads;
    uint4 values[2] = {};
    for (int p = 0; p < range.pieces; ++p) {
      const std::int64_t piece = range.first_piece + p;
      const int quads = next.quads;
      std::uint32_t row_of_b = rows + next_start * kRowBytes;
      if (p + 1 < range.pieces) look_up(piece + 1);
      float even[kPlanes][4] = {}, odd[kPlanes][4] = {};
      for (int left = quads; left > 0;) {
        int count = 0;
        const char* quad = reader.quads(count);
        count = min(count, left);
#pragma unroll 1
        for (int q = 0; q < count; ++q, quad += kQuadBytes)
          multiply_quad<T>(even, odd, row_of_b, quad, role, values);
        left -= count;
        quads_left -= count;
        reader.release(count, quads_left == 0);
      }
      float* const to =
          args.partial +
          ((blockIdx.y * args.piece_count + piece) * Streams::kRows + lane / 4) * kColumns +
          2 * (lane % 4);
#pragma unroll
      for (int plane = 0; plane < kPlanes; ++plane)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          *reinterpret_cast<float2*>(to + half * 8 * kColumns + plane * kPlaneColumns) =
              make_float2(even[plane][2 * half] + odd[plane][2 * half],
                          even[plane][2 * half + 1] + odd[plane][2 * half + 1]);
    }
  }
}

// C: each row's pieces in their order. A thread has four columns of a row. The rows of a slice have
// parts in different pieces, so no warp that arrives last (common/arrive_and_sum.cuh) has all of
// them: a kernel of its own adds them up.
template <class T>
__global__ void add_parts(const float* partial, std::int64_t piece_count, int columns,
                          const std::int32_t* part_ptr, const std::int32_t* parts,
                          const __grid_constant__ DenseView c) {
  const std::int64_t quarter = (c.cols + 3) / 4,
                     i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  ptx::griddepcontrol_launch_dependents();
  if (i >= c.rows * quarter) return;
  const bool by_row = c.layout == Layout::row_major;
  const std::int64_t row = by_row ? i / quarter : i % c.rows;
  const std::int64_t column = 4 * (by_row ? i % quarter : i / c.rows);
  const float* const tile =
      partial + column / columns * piece_count * Streams::kRows * columns + column % columns;
  const std::int32_t first = part_ptr[row], last = part_ptr[row + 1];
  // Where the first parts lie does not depend on the predecessor.
  constexpr int kAhead = 4;
  std::int64_t ahead[kAhead];
#pragma unroll
  for (int i = 0; i < kAhead; ++i) ahead[i] = first + i < last ? parts[first + i] : 0;
  ptx::griddepcontrol_wait();
  float4 sum = make_float4(0, 0, 0, 0);
  const auto add = [&](const float4& x) {
    sum.x += x.x;
    sum.y += x.y;
    sum.z += x.z;
    sum.w += x.w;
  };
  const auto fetch = [&](std::int64_t part) {
    return __ldcg(reinterpret_cast<const float4*>(tile + part * columns));
  };
  float4 fetched[kAhead] = {};
#pragma unroll
  for (int i = 0; i < kAhead; ++i)
    if (first + i < last) fetched[i] = fetch(ahead[i]);
#pragma unroll
  for (int i = 0; i < kAhead; ++i) add(fetched[i]);
  for (std::int32_t part = first + kAhead; part < last; ++part) add(fetch(parts[part]));
  const float sums[4] = {sum.x, sum.y, sum.z, sum.w};
  T* const to = static_cast<T*>(c.data);
#pragma unroll
  for (int j = 0; j < 4; ++j)
    if (column + j < c.cols)
      to[by_row ? row * c.ld + column + j : (column + j) * c.ld + row] = from_float<T>(sums[j]);
}

}  // namespace spmmbench::gather_mma
