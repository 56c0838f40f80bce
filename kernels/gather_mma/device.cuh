#pragma once
// The device side of gather_mma.
//
//   block: 16 warps, one chunk of B's columns of k
//     shared memory: the chunk's rows of B (gather_mma/rows_of_b.cuh), where they fit into half of
//       it, twice (gather_mma/format.hpp)
//     registers: groups of quads (gather_mma/format.hpp), loaded ahead, and the sums of a slice
//       (gather_mma/quads.cuh)
//   piece of a slice: its 16 rows' sums go to the workspace, and add_parts adds up each row's
//     pieces; or to shared memory (gather_mma/bands.cuh)

#include <cstdint>

#include "gather_mma/format.hpp"
#include "gather_mma/quads.cuh"
#include "gather_mma/rows_of_b.cuh"
#include "gpu/element.cuh"
#include "ptx/griddepcontrol.cuh"
#include "ptx/ld_global.cuh"
#include "spmmbench/device.hpp"

namespace spmmbench::gather_mma {

struct Arguments {
  const std::int32_t* block_chunk;
  const Streams::Range* ranges;  // [block][warp]
  const Streams::Piece* pieces;
  const Streams::Start* starts;  // [range][lane]
  const std::uint32_t* words;
  std::int64_t piece_count;
  std::int32_t chunk_cols;
  std::int32_t second_cols;  // of the second copy of B; 0: there is none
  float* partial;            // [tile of columns][piece][row][column]
};

// A warp's groups, in order, loaded into registers. One is on its way while another is multiplied:
// 24 KB for the 16 warps, 16 KB in fp8.
template <class T>
class GroupReader {
  static constexpr int kGroupWords = Streams::group_words(sizeof(T));

 public:
  struct Group {  // what one lane has of it
    uint4 moves, values[sizeof(T)];

    // A lane's values of a quad, as Sums takes them.
    __device__ auto of_quad(int quad) const {
      if constexpr (kFp8<T>) return word(values[0], quad);
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

// The pieces of a warp, one after another.
template <class T, int kPlanes, int kEights>
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
        other_(image_bytes(args.chunk_cols) + image_bytes(args.second_cols)),
        rows_(rows) {
#pragma unroll
    for (int step = 0; step < Streams::kQuadSteps; ++step)
      row_of_b_[step] = first_row(step) + start.u[step] * kMoveBytes;
    groups_ = args.pieces[piece_].groups;
    look_up();
  }

  // Multiplies the next group. Returns whether the last piece has ended.
  __device__ bool multiply(const typename GroupReader<T>::Group& group) {
#pragma unroll
    for (int quad = 0; quad < Streams::kGroupQuads; ++quad)
      sums_.multiply(row_of_b_, group.word(group.moves, quad), group.of_quad(quad));
    if (--groups_ > 0) return false;
    store();
    if (++piece_ == last_) return true;
    sums_.clear();
#pragma unroll
    for (int step = 0; step < Streams::kQuadSteps; ++step) row_of_b_[step] = first_row(step);
    groups_ = next_groups_;
    look_up();
    return false;
  }

 private:
  __device__ std::uint32_t first_row(int step) const {
    return rows_ + Sums<T, kPlanes, kEights>::first_byte(step, other_);
  }
  __device__ void look_up() {
    if (piece_ + 1 < last_) next_groups_ = args_.pieces[piece_ + 1].groups;
  }
  __device__ void store() const {
    sums_.store(to_ + std::int64_t{piece_ - first_} * Streams::kRows * kPlanes * kPlaneColumns);
  }

  const Arguments& args_;
  float* to_;
  std::int32_t first_, piece_, last_;
  int other_;           // RowsOfB::other
  std::uint32_t rows_;  // of B
  std::uint32_t row_of_b_[Streams::kQuadSteps];
  std::int32_t groups_, next_groups_ = 0;  // left of the piece, of the next one
  Sums<T, kPlanes, kEights> sums_;
};

// What a warp multiplies. It is begun before B may be read.
template <class T, int kPlanes, int kEights>
class Share {
 public:
  __device__ explicit Share(const Arguments& args)
      : args_(args),
        chunk_(args.block_chunk[blockIdx.x]),
        range_(args.ranges[range_at()]),
        start_(args.starts[range_at() * Streams::kLanes + threadIdx.x % Streams::kLanes]),
        reader_(args, range_) {
    reader_.load(first_group_);
  }

  // Waits for the predecessor, and copies the block's rows of B into shared memory.
  __device__ void load_b(const DenseView& b, char* shared) const {
    RowsOfB rows{};
    rows.first = std::int64_t{chunk_} * args_.chunk_cols;
    rows.count = static_cast<int>(min(b.rows - rows.first, std::int64_t{args_.chunk_cols}));
    rows.padded = (rows.count + Streams::kOctet - 1) / Streams::kOctet * Streams::kOctet;
    const int image = image_bytes(args_.chunk_cols);
    if (args_.second_cols > 0) rows.second = image;
    rows.second_rows = Streams::lines(args_.second_cols) * Streams::kOctet;
    if (kHasBoth<kEights>) rows.other = image + image_bytes(args_.second_cols);
    if (args_.second_cols > 0 || kHasBoth<kEights>)
      rows.padded = Streams::lines(args_.chunk_cols) * Streams::kOctet;
    const std::int64_t column = blockIdx.y * std::int64_t{kPlanes * kPlaneColumns};
    const auto to = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
    if (b.layout == Layout::row_major) {
      ptx::griddepcontrol_wait();
      load_rows<T, kPlanes, kEights>(b, rows, column, to);
    } else if constexpr (kFp8<T> && kPlanes == 1) {
      FourRows<kEights> four(b, rows, column, to);
      ptx::griddepcontrol_wait();
      four.load();
      four.store();
    } else {
      ptx::griddepcontrol_wait();
      load_columns<T, kPlanes>(b, rows, column, to);
    }
    __syncthreads();
  }
  // `sums`: where those of piece `first_piece` go.
  __device__ void multiply(char* shared, float* sums, std::int32_t first_piece) {
    if (range_.pieces == 0) return;
    const auto rows = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
    Pieces<T, kPlanes, kEights> pieces(args_, range_, start_, rows, sums, first_piece);
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
  const std::int32_t chunk_;
  const Streams::Range range_;
  const Streams::Start start_;
  GroupReader<T> reader_;
  typename GroupReader<T>::Group first_group_;
};

// Registers of a thread, so that a block of add_parts finds room beside one of `multiply`.
inline constexpr int kMostRegisters = 104;

template <class T, int kPlanes, int kEights>
__global__ void __maxnreg__(kMostRegisters)
    multiply(const __grid_constant__ Arguments args, const __grid_constant__ DenseView b) {
  extern __shared__ __align__(128) char shared[];
  ptx::griddepcontrol_launch_dependents();
  Share<T, kPlanes, kEights> share(args);
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
