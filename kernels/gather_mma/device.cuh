#pragma once
// The device side of gather_mma.
//
//   block: 16 warps, one chunk of B's columns of k
//     shared memory: the chunk's rows of B, 16 bytes (8 columns) each, one or two planes of them,
//     or
//       two copies of one (format/slot_streams.hpp)
//     registers: groups of quads (format/slot_streams.hpp), loaded ahead
//     warp, per step of 32 nonzeros, 8 each of 4 rows:
//       lane l:   address of its row of B += move                          (1 dot product of bytes)
//       ldmatrix: 32 rows of a plane of B -> the first operand of two mma, transposed
//       2 mma, whose second operands have the values of two rows each, and zeros elsewhere
//     fp8: B becomes fp16 on its way to shared memory, values as they are used; both are exact
//   piece of a slice: its 16 rows' sums go to the workspace, and add_parts adds up each row's
//     pieces; or to shared memory (gather_mma/bands.cuh)

#include <cstdint>

#include "format/slot_streams.hpp"
#include "gpu/element.cuh"
#include "ptx/cvt.cuh"
#include "ptx/griddepcontrol.cuh"
#include "ptx/ld_global.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/mma.cuh"
#include "ptx/stmatrix.cuh"
#include "spmmbench/device.hpp"

namespace spmmbench::gather_mma {

using Streams = SlotStreams;
inline constexpr int kWarps = 16;
inline constexpr int kThreads = 32 * kWarps;
inline constexpr int kRowBytes = 16;  // of B and a plane
inline constexpr int kPlaneColumns = 8;
inline constexpr int kPlaneBytes = Streams::kMostChunk * kRowBytes;
inline constexpr unsigned kMoveBytes = Streams::kOctet * kRowBytes;  // between rows of B of a slot
// Of planes or copies, of which one is one.
constexpr int shared_bytes(int images) { return images * kPlaneBytes; }
static_assert(shared_bytes(2) <= 232448, "227 KB a block");
static_assert(Streams::lines(Streams::kMostChunk) * kMoveBytes == kPlaneBytes);

struct Arguments {
  const std::int32_t* block_chunk;
  const Streams::Range* ranges;  // [block][warp]
  const Streams::Piece* pieces;
  const Streams::Start* starts;  // [range][lane]
  const std::uint32_t* words;
  std::int64_t piece_count;
  std::int32_t chunk_cols;
  int copies;      // of B, with one plane
  float* partial;  // [tile of columns][piece][row][column]
};

template <class T>
inline constexpr bool kFp8 = std::is_same_v<T, __nv_fp8_e4m3>;

// A warp's groups, in order, loaded into registers. One is on its way while another is multiplied:
// 24 KB for the 16 warps, 16 KB in fp8.
template <class T>
class GroupReader {
  static constexpr int kGroupWords = Streams::group_words(sizeof(T));

 public:
  struct Group {  // what one lane has of it
    uint4 moves, values[sizeof(T)];

    // Of row g in the quad, and of row g + 8, two slots each.
    __device__ uint2 of_quad(int quad) const {
      if constexpr (kFp8<T>) return ptx::cvt_rn_f16x2_e4m3x2(word(values[0], quad));
      else
        return quad % 2 == 0 ? make_uint2(values[quad / 2].x, values[quad / 2].y)
                             : make_uint2(values[quad / 2].z, values[quad / 2].w);
    }
    __device__ static std::uint32_t word(const uint4& four, int i) {
      return i == 0 ? four.x : i == 1 ? four.y : i == 2 ? four.z : four.w;
    }
  };

  __device__ GroupReader(const Arguments& args, const Streams::Range& range)
      : next_(args.words + range.first_group * kGroupWords +
              threadIdx.x % 32 * Streams::kGroupQuads),
        left_(range.groups) {}

  __device__ void load(Group& to) {
    if (left_ <= 0) return;
    constexpr int kPart = Streams::kLanes * Streams::kGroupQuads;  // words
    to.moves = ptx::ld_global_nc_no_allocate_v4(next_);
#pragma unroll
    for (int i = 0; i < int{sizeof(T)}; ++i)
      to.values[i] = ptx::ld_global_nc_no_allocate_v4(next_ + (1 + i) * kPart);
    next_ += kGroupWords;
    --left_;
  }
  // Loads the next group when this one has arrived. The loads of both count together, so a use of
  // this one would wait for the next one too if that were on its way already. The condition always
  // holds, since no word of moves has all bits set; it makes the loads wait.
  __device__ void load_after(const Group& arrived, Group& next) {
    if (arrived.moves.x != ~0U) load(next);
  }

 private:
  const std::uint32_t* next_;
  int left_;
};

// Eight values of B as 16-bit ones.
template <class T>
__device__ uint4 load_eight(const T* from) {
  if constexpr (kFp8<T>) {
    const uint2 eight = *reinterpret_cast<const uint2*>(from);
    const uint2 low = ptx::cvt_rn_f16x2_e4m3x2(eight.x), high = ptx::cvt_rn_f16x2_e4m3x2(eight.y);
    return make_uint4(low.x, low.y, high.x, high.y);
  } else {
    return *reinterpret_cast<const uint4*>(from);
  }
}

// Where a block's rows of B go.
struct RowsOfB {
  std::int64_t first;  // of B
  int count;           // zeros behind them, which zeros of A may name, up to
  int padded;          // a multiple of 8; where there are two copies, to the end of the first
  int second;          // bytes from the first copy to the second; 0: none

  // In the second copy, after its beginning.
  __device__ static unsigned second_place(int row) {
    constexpr int kOctet = Streams::kOctet;
    const int line = row / kOctet;
    const int slot = Streams::Turns::second_slot(row % kOctet, Streams::Turns::of_line(line));
    return line * kMoveBytes + slot * kRowBytes;
  }
};

// B's columns column .. column + 8 * kPlanes, row-major B. Columns past the last hold anything.
template <class T, int kPlanes>
__device__ void load_rows(const DenseView& b, const RowsOfB& rows, std::int64_t column, char* to) {
  const auto* const from = static_cast<const T*>(b.data);
#pragma unroll 4
  for (int i = threadIdx.x; i < rows.padded * kPlanes; i += kThreads) {
    const int k = i / kPlanes, plane = i % kPlanes;
    uint4 row = make_uint4(0, 0, 0, 0);
    if (k < rows.count && column + plane * kPlaneColumns < b.cols)
      row = load_eight(from + (rows.first + k) * b.ld + column + plane * kPlaneColumns);
    *reinterpret_cast<uint4*>(to + plane * kPlaneBytes + k * kRowBytes) = row;
    if (kPlanes == 1 && rows.second > 0)
      *reinterpret_cast<uint4*>(to + rows.second + RowsOfB::second_place(k)) = row;
  }
}

// The same of column-major B. A warp transposes 32 rows by 8 columns at a time: lane 4g + t loads
// rows 8t .. 8t + 7 of column g, four pairs of rows. Its pair j + t goes to matrix j, so that the 8
// rows of a matrix lie in different banks.
template <class T, int kPlanes>
__device__ void load_columns(const DenseView& b, const RowsOfB& rows, std::int64_t column,
                             std::uint32_t to) {
  constexpr int kBlockRows = 32, kAhead = 8;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int g = lane / 4, t = lane % 4;
  const auto* const from = static_cast<const T*>(b.data);
  const int blocks = (rows.padded + kBlockRows - 1) / kBlockRows * kPlanes;
  // The row that this lane names: of matrix lane / 8, row lane % 8 = 2q + e, from lanes with t = q.
  const int q = lane % 8 / 2, named = 8 * q + 2 * ((lane / 8 + q) % 4) + lane % 2;
  for (int base = warp; base < blocks; base += kAhead * kWarps) {
    uint4 loaded[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int block = base + i * kWarps;
      const int k = block / kPlanes * kBlockRows + 8 * t;
      const std::int64_t n = column + block % kPlanes * kPlaneColumns + g;
      loaded[i] = make_uint4(0, 0, 0, 0);
      if (block < blocks && k < rows.count && n < b.cols)
        loaded[i] = load_eight(from + n * b.ld + rows.first + k);
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int block = base + i * kWarps;
      if (block >= blocks) break;
      const int k = block / kPlanes * kBlockRows;
      std::uint32_t pairs[4] = {loaded[i].x, loaded[i].y, loaded[i].z, loaded[i].w};
      if (k + 8 * t + 8 > rows.count) {  // what lies behind the last row is not zero
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int inside = rows.count - (k + 8 * t + 2 * j);
          pairs[j] = inside >= 2 ? pairs[j] : inside == 1 ? pairs[j] & 0xFFFFU : 0;
        }
      }
      const bool by_one = t % 2 != 0, by_two = t >= 2;
      const std::uint32_t turned[4] = {by_one ? pairs[1] : pairs[0], by_one ? pairs[2] : pairs[1],
                                       by_one ? pairs[3] : pairs[2], by_one ? pairs[0] : pairs[3]};
      const std::uint32_t matrices[4] = {
          by_two ? turned[2] : turned[0], by_two ? turned[3] : turned[1],
          by_two ? turned[0] : turned[2], by_two ? turned[1] : turned[3]};
      ptx::stmatrix_x4_trans(to + block % kPlanes * kPlaneBytes + (k + named) * kRowBytes,
                             matrices);
      if (kPlanes == 1 && rows.second > 0)
        ptx::stmatrix_x4_trans(to + rows.second + RowsOfB::second_place(k + named), matrices);
    }
  }
}

// A slice's sums, transposed: [half] has those of rows 0 .. 7 and 8 .. 15, for column g of a plane
// and rows 2t and 2t + 1 of the half. Two planes are the two halves of an mma. With one plane, an
// mma multiplies the values of one half with rows of B for both, and only half of it is read.
template <int kPlanes>
struct Sums {
  float of[2][4] = {};
  __device__ float at(int half, int plane, int i) const {
    return of[half][2 * (kPlanes == 1 ? half : plane) + i];
  }
};

// One quad. Lane 4g + t has the values of row g in slots 2t and 2t + 1, and those of row g + 8.
template <class T, int kPlanes>
__device__ void multiply_quad(Sums<kPlanes>& sums, std::uint32_t (&row_of_b)[Streams::kQuadSteps],
                              std::uint32_t moves, uint2 values) {
  using Input = std::conditional_t<kFp8<T>, __half, T>;
  const int g = threadIdx.x % 32 / 4;
#pragma unroll
  for (int step = 0; step < Streams::kQuadSteps; ++step) {
    row_of_b[step] = __dp4a(moves, kMoveBytes << (8 * step), row_of_b[step]);
    const bool first = g == 2 * step, second = g == 2 * step + 1;  // rows whose turn it is
    std::uint32_t b[kPlanes][4];  // of rows 2s, 2s + 8, 2s + 1, 2s + 9
#pragma unroll
    for (int plane = 0; plane < kPlanes; ++plane)
      ptx::ldmatrix_x4_trans(b[plane], row_of_b[step] + plane * kPlaneBytes);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t of_half = half == 0 ? values.x : values.y;
      const std::uint32_t low = first ? of_half : 0, high = second ? of_half : 0;
      if constexpr (kPlanes == 1)
        ptx::mma_m16n8k16(Input{}, sums.of[half], b[0][0], b[0][1], b[0][2], b[0][3], low, high);
      else
        ptx::mma_m16n8k16(Input{}, sums.of[half], b[0][half], b[1][half], b[0][2 + half],
                          b[1][2 + half], low, high);
    }
  }
}

// The pieces of a warp, one after another.
template <class T, int kPlanes>
class Pieces {
 public:
  // `sums`: those of piece `first`.
  __device__ Pieces(const Arguments& args, const Streams::Range& range, const Streams::Start& start,
                    std::uint32_t rows, float* sums, std::int32_t first)
      : args_(args),
        to_(sums),
        first_(first),
        piece_(range.first_piece),
        last_(range.first_piece + range.pieces),
        first_row_(rows + threadIdx.x % Streams::kOctet * kRowBytes) {
#pragma unroll
    for (int step = 0; step < Streams::kQuadSteps; ++step)
      row_of_b_[step] = first_row_ + start.u[step] * kMoveBytes;
    groups_ = args.pieces[piece_].groups;
    look_up();
  }

  // Multiplies the next group. Returns whether the last piece has ended.
  __device__ bool multiply(const typename GroupReader<T>::Group& group) {
#pragma unroll
    for (int quad = 0; quad < Streams::kGroupQuads; ++quad)
      multiply_quad<T>(sums_, row_of_b_, group.word(group.moves, quad), group.of_quad(quad));
    if (--groups_ > 0) return false;
    store();
    if (++piece_ == last_) return true;
    sums_ = {};
#pragma unroll
    for (std::uint32_t& row : row_of_b_) row = first_row_;
    groups_ = next_groups_;
    look_up();
    return false;
  }

 private:
  __device__ void look_up() {
    if (piece_ + 1 < last_) next_groups_ = args_.pieces[piece_ + 1].groups;
  }
  __device__ void store() const {
    constexpr int kColumns = kPlanes * kPlaneColumns;
    const int lane = threadIdx.x % 32;
    const std::int64_t row = std::int64_t{piece_ - first_} * Streams::kRows + 2 * (lane % 4);
    float* const to = to_ + row * kColumns + lane / 4;
#pragma unroll
    for (int plane = 0; plane < kPlanes; ++plane)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        to[i * kColumns + plane * kPlaneColumns] = sums_.at(0, plane, i);
        to[(i + 8) * kColumns + plane * kPlaneColumns] = sums_.at(1, plane, i);
      }
  }

  const Arguments& args_;
  float* to_;
  std::int32_t first_, piece_, last_;
  std::uint32_t first_row_;  // of B, for this lane's slot
  std::uint32_t row_of_b_[Streams::kQuadSteps];
  std::int32_t groups_, next_groups_ = 0;  // left of the piece, of the next one
  Sums<kPlanes> sums_;
};

// What a warp multiplies. It is begun before B may be read.
template <class T, int kPlanes>
class Share {
 public:
  __device__ explicit Share(const Arguments& args)
      : args_(args),
        range_(args.ranges[range_at()]),
        start_(args.starts[range_at() * Streams::kLanes + threadIdx.x % Streams::kLanes]),
        reader_(args, range_) {
    reader_.load(first_group_);
  }

  // Waits for the predecessor, and copies the block's rows of B into shared memory.
  __device__ void load_b(const DenseView& b, char* shared) const {
    RowsOfB rows{};
    rows.first = std::int64_t{args_.block_chunk[blockIdx.x]} * args_.chunk_cols;
    rows.count = static_cast<int>(min(b.rows - rows.first, std::int64_t{args_.chunk_cols}));
    rows.padded = (rows.count + Streams::kOctet - 1) / Streams::kOctet * Streams::kOctet;
    if (args_.copies > 1) {
      rows.padded = Streams::lines(args_.chunk_cols) * Streams::kOctet;
      rows.second = rows.padded * kRowBytes;
    }
    const std::int64_t column = blockIdx.y * std::int64_t{kPlanes * kPlaneColumns};
    const auto to = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
    ptx::griddepcontrol_wait();
    if (b.layout == Layout::row_major) load_rows<T, kPlanes>(b, rows, column, shared);
    else load_columns<T, kPlanes>(b, rows, column, to);
    __syncthreads();
  }
  // `sums`: where those of piece `first_piece` go.
  __device__ void multiply(char* shared, float* sums, std::int32_t first_piece) {
    if (range_.pieces == 0) return;
    const auto rows = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
    Pieces<T, kPlanes> pieces(args_, range_, start_, rows, sums, first_piece);
    typename GroupReader<T>::Group second_group;
    while (true) {
      reader_.load_after(first_group_, second_group);
      if (pieces.multiply(first_group_)) return;
      reader_.load_after(second_group, first_group_);
      if (pieces.multiply(second_group)) return;
    }
  }

 private:
  __device__ static std::int64_t range_at() {
    return std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  }

  const Arguments& args_;
  const Streams::Range range_;
  const Streams::Start start_;
  GroupReader<T> reader_;
  typename GroupReader<T>::Group first_group_;
};

// Registers of a thread, so that a block of add_parts finds room beside one of `multiply`.
inline constexpr int kMostRegisters = 104;

template <class T, int kPlanes>
__global__ void __maxnreg__(kMostRegisters)
    multiply(const __grid_constant__ Arguments args, const __grid_constant__ DenseView b) {
  extern __shared__ __align__(128) char shared[];
  ptx::griddepcontrol_launch_dependents();
  Share<T, kPlanes> share(args);
  share.load_b(b, shared);
  const std::int64_t floats_of_tile = args.piece_count * Streams::kRows * kPlanes * kPlaneColumns;
  share.multiply(shared, args.partial + blockIdx.y * floats_of_tile, 0);
}

inline constexpr int kAddThreads = 256;
inline constexpr int kAddRegisters = 40;  // of a thread, at most
inline constexpr int kAddBlocks = 6;      // of a multiprocessor
inline constexpr int kAhead = 2;          // pieces that a lane has in flight
inline constexpr int kMostTeam = 8;       // lanes that add the pieces of a row
static_assert(kThreads * kMostRegisters + kAddThreads * kAddRegisters <= 65536 &&
                  kAddBlocks * kAddThreads * kAddRegisters <= 65536,
              "registers of a multiprocessor");

// C: eight columns of a row are the sum of the row's pieces, times the scale. A team of kTeam lanes
// adds every kTeam-th piece in order, and then the lanes' sums, so that results are the same from
// run to run. The rows of a slice have parts in different pieces, so no warp that arrives last
// (common/arrive_and_sum.cuh) has all of them: a kernel of its own adds them up. Its blocks wait on
// the multiprocessors while `multiply` runs, with the registers that it leaves.
template <class T, int kTeam>
__global__ void __launch_bounds__(kAddThreads, kAddBlocks)
    add_parts(const float* partial, std::int64_t piece_count, int columns,
              const std::int32_t* part_ptr, const std::int32_t* parts, float scale,
              const __grid_constant__ DenseView c) {
  ptx::griddepcontrol_launch_dependents();
  const bool by_row = c.layout == Layout::row_major;
  const std::int64_t groups = (c.cols + kPlaneColumns - 1) / kPlaneColumns;
  const std::int64_t items = c.rows * groups;
  constexpr int kTeams = 32 / kTeam;  // of a warp
  const int lane = static_cast<int>(threadIdx.x) % 32, member = lane % kTeam;
  const std::int64_t warp = (blockIdx.x * std::int64_t{kAddThreads} + threadIdx.x) / 32;
  const std::int64_t warps = gridDim.x * std::int64_t{kAddThreads / 32};
  bool waited = false;
  // All lanes of a warp stay together, since teams exchange sums.
  for (std::int64_t first = warp * kTeams; first < items; first += warps * kTeams) {
    const bool inside = first + lane / kTeam < items;
    const std::int64_t i = inside ? first + lane / kTeam : first;
    const std::int64_t row = by_row ? i / groups : i % c.rows;
    const std::int64_t column = kPlaneColumns * (by_row ? i % groups : i / c.rows);
    const float* const tile =
        partial + column / columns * piece_count * Streams::kRows * columns + column % columns;
    const std::int32_t last = part_ptr[row + 1];
    std::int32_t part = part_ptr[row] + member;
    // Where the first parts lie does not depend on the predecessor.
    std::int32_t ahead[kAhead];
#pragma unroll
    for (int a = 0; a < kAhead; ++a)
      ahead[a] = part + a * kTeam < last ? parts[part + a * kTeam] : 0;
    if (!waited) ptx::griddepcontrol_wait();
    waited = true;
    float4 sums[2] = {};
    for (; part < last; part += kAhead * kTeam) {
      float4 fetched[kAhead][2] = {};
#pragma unroll
      for (int a = 0; a < kAhead; ++a)
        if (part + a * kTeam < last)
#pragma unroll
          for (int h = 0; h < 2; ++h)
            fetched[a][h] = __ldcg(
                reinterpret_cast<const float4*>(tile + std::int64_t{ahead[a]} * columns) + h);
#pragma unroll
      for (int a = 0; a < kAhead; ++a) {
        const std::int32_t next = part + (kAhead + a) * kTeam;
        ahead[a] = next < last ? parts[next] : 0;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          sums[h].x += fetched[a][h].x;
          sums[h].y += fetched[a][h].y;
          sums[h].z += fetched[a][h].z;
          sums[h].w += fetched[a][h].w;
        }
      }
    }
    float values[kPlaneColumns] = {sums[0].x, sums[0].y, sums[0].z, sums[0].w,
                                   sums[1].x, sums[1].y, sums[1].z, sums[1].w};
#pragma unroll
    for (int apart = kTeam / 2; apart > 0; apart /= 2)
#pragma unroll
      for (float& value : values) value += __shfl_xor_sync(~0U, value, apart);
    T* const to = static_cast<T*>(c.data);
#pragma unroll
    for (int j = 0; j < kPlaneColumns; ++j)
      if (inside && j % kTeam == member && column + j < c.cols)
        to[by_row ? row * c.ld + column + j : (column + j) * c.ld + row] =
            from_float<T>(scale * values[j]);
  }
}

// add_parts for a team of `lanes`, a power of two up to kMostTeam.
template <class T>
auto add_parts_by(int lanes) {
  return lanes == 1   ? add_parts<T, 1>
         : lanes == 2 ? add_parts<T, 2>
         : lanes == 4 ? add_parts<T, 4>
                      : add_parts<T, kMostTeam>;
}

}  // namespace spmmbench::gather_mma
