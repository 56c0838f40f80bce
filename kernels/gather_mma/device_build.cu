// Builds slot streams on the device.
//
//   measure_rows    eight lanes, one for each slot, for each row in each chunk: its groups
//   (a sort)        the rows of each stream by falling groups
//   list_slices     the rows of each slice, and where each row went
//   fill_slices     eight lanes for each row of a slice: moves and values
//   find_starts     a warp for each range that begins in the middle of a slice
//   count_parts, write_parts   one band: a thread for each row
//   write_row_parts            several: a thread for each row in each chunk
//
// The slices' lengths come to the host, which cuts the stream into pieces.

#include "gather_mma/device_build.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <limits>
#include <numeric>
#include <vector>

#include "common/device_arrays.hpp"
#include "common/memory_layout.hpp"
#include "gpu/cuda_check.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench::gather_mma {
namespace {

using Streams = SlotStreams;
constexpr int kBuildThreads = 256;
constexpr int kOctet = Streams::kOctet, kRows = Streams::kRows;
constexpr int kGroupBits = 8;  // a slot of a chunk has at most 640 nonzeros and few zeros between
constexpr std::uint32_t kMostGroups = (1U << kGroupBits) - 1;
static_assert(Streams::kMostChunk / kOctet / Streams::kGroupQuads + 2 < kMostGroups);

unsigned ctas_for(std::int64_t threads) {
  return static_cast<unsigned>(
      std::max<std::int64_t>(1, (threads + kBuildThreads - 1) / kBuildThreads));
}
__device__ std::int64_t thread_of_grid() {
  return std::int64_t{blockIdx.x} * kBuildThreads + threadIdx.x;
}

using Turns = Streams::Turns;

struct Chunks {
  DeviceCsr a;
  std::int32_t cols, second_cols;  // of a chunk; of the second copy
  int copies;

  __device__ std::int64_t first_entry(std::int64_t row, std::int64_t chunk) const {
    std::int64_t low = a.row_ptr[row], high = a.row_ptr[row + 1];
    while (low < high) {
      const std::int64_t middle = (low + high) / 2;
      if (a.col_idx[middle] < chunk * cols) low = middle + 1;
      else high = middle;
    }
    return low;
  }
  // visit(column in the chunk, entry) for each entry of a row in a chunk.
  template <class Visit>
  __device__ void for_each(std::int64_t row, std::int64_t chunk, Visit visit) const {
    const std::int64_t end = a.row_ptr[row + 1];
    for (std::int64_t at = first_entry(row, chunk); at < end; ++at) {
      const std::int64_t col = a.col_idx[at] - chunk * cols;
      if (col >= cols) return;
      visit(static_cast<int>(col), at);
    }
  }

  // Which entries of a row the second copy has. The eight lanes of a row call it.
  __device__ void find_turns(std::int64_t row, std::int64_t chunk, int slot, Turns& turns) const {
    const unsigned octet = 0xFFU << (threadIdx.x % 32 / kOctet * kOctet);
    for (int turn = 0; turn < kOctet; ++turn) turns.count[slot][turn] = turns.moved[slot][turn] = 0;
    turns.fixed[slot] = 0;
    if (copies == 1) return __syncwarp(octet);
    for_each(row, chunk, [&](int col, std::int64_t) {
      if (Turns::slot_of(col) != slot) return;
      if (col < second_cols) ++turns.count[slot][Turns::turn_of(col)];
      else ++turns.fixed[slot];
    });
    __syncwarp(octet);
    if (slot == 0) turns.level();
    __syncwarp(octet);
  }
  // The entries of one slot of a row in a chunk: visit(place in the slot, move, entry), with -1 for
  // the zeros on the way. Returns how many there are.
  template <class Visit>
  __device__ std::int32_t for_slot(std::int64_t row, std::int64_t chunk, int slot,
                                   const Turns& turns, Visit visit) const {
    std::int32_t used = 0;
    int u = 0;
    const auto put = [&](int line, std::int64_t entry) {
      int left = line - u;
      u = line;
      for (; left > Streams::kMostMove; left -= Streams::kMostMove)
        visit(used++, Streams::kMostMove, std::int64_t{-1});
      visit(used++, left, entry);
    };
    for (int copy = 0; copy < copies; ++copy) {
      std::uint16_t seen[kOctet] = {};  // of each turn, of the one slot whose entries may come here
      for_each(row, chunk, [&](int col, std::int64_t entry) {
        const int of_first = Turns::slot_of(col), turn = Turns::turn_of(col);
        if ((copy == 0 ? of_first : Turns::second_slot(of_first, turn)) != slot) return;
        const bool moves = col < second_cols && seen[turn]++ < turns.moved[of_first][turn];
        if (moves == (copy == 1)) put(copy * Streams::lines(cols) + col / kOctet, entry);
      });
    }
    return used;
  }
};

// Keys that sort the rows of each stream by falling groups, those without an entry last.
__global__ void __launch_bounds__(kBuildThreads)
    measure_rows(Chunks in, std::int64_t chunks, std::int64_t band_rows, std::uint32_t* keys,
                 std::int32_t* rows, std::int32_t* filled) {
  const std::int64_t item = thread_of_grid() / kOctet;
  const std::int64_t row = item % in.a.rows, chunk = item / in.a.rows;
  const int slot = static_cast<int>(threadIdx.x) % kOctet;
  __shared__ Turns of_rows[kBuildThreads / kOctet];
  Turns& turns = of_rows[threadIdx.x / kOctet];
  std::int32_t quads = 0;
  if (chunk < chunks) {
    in.find_turns(row, chunk, slot, turns);
    quads = in.for_slot(row, chunk, slot, turns, [](int, int, std::int64_t) {});
  }
  for (int lanes = kOctet / 2; lanes > 0; lanes /= 2)
    quads = max(quads, __shfl_xor_sync(0xFFFFFFFFU, quads, lanes));
  if (chunk >= chunks || slot != 0) return;
  const auto groups =
      static_cast<std::uint32_t>((quads + Streams::kGroupQuads - 1) / Streams::kGroupQuads);
  const std::int64_t stream = row / band_rows * chunks + chunk;
  keys[item] = static_cast<std::uint32_t>(stream) << kGroupBits | (kMostGroups - groups);
  rows[item] = static_cast<std::int32_t>(row);
  if (groups > 0) atomicAdd(filled + stream, 1);
}

// The slices of A while they are built.
struct Slices {
  std::int64_t count, rows;  // slices; rows of A
  std::int64_t chunks, band_rows;
  std::int32_t* stream;                 // of each slice
  const std::int32_t* first_of_stream;  // slice
  const std::int32_t* filled;           // rows of each stream
  std::int32_t* row;                    // [slice][kRows]; -1: none
  std::int32_t* groups;
  std::int32_t* place;  // of each row in each chunk, into `row`; -1: none

  __device__ std::int64_t chunk(std::int64_t slice) const { return stream[slice] % chunks; }
};

__global__ void __launch_bounds__(kBuildThreads)
    list_slices(Slices out, const std::uint32_t* sorted_keys, const std::int32_t* sorted_rows) {
  const std::int64_t at = thread_of_grid(), slice = at / kRows;
  if (slice >= out.count) return;
  const std::int64_t stream = out.stream[slice], band = stream / out.chunks;
  const std::int64_t in_stream = at - std::int64_t{out.first_of_stream[stream]} * kRows;
  // The rows of the bands before, in all chunks, and of this band in the chunks before.
  const std::int64_t rows_of_band = min(out.band_rows, out.rows - band * out.band_rows);
  const std::int64_t from =
      band * out.band_rows * out.chunks + stream % out.chunks * rows_of_band + in_stream;
  const bool is_there = in_stream < out.filled[stream];
  const std::int32_t row = is_there ? sorted_rows[from] : -1;
  out.row[at] = row;
  if (is_there) out.place[stream % out.chunks * out.rows + row] = static_cast<std::int32_t>(at);
  if (at % kRows == 0)
    out.groups[slice] = static_cast<std::int32_t>(kMostGroups - (sorted_keys[from] & kMostGroups));
}

// `words` are zero. Nobody else writes the bytes of a row's moves and values.
template <class Bits>
__global__ void __launch_bounds__(kBuildThreads)
    fill_slices(Chunks in, Slices slices, const std::int64_t* first_group, std::uint32_t* words) {
  const std::int64_t at = thread_of_grid() / kOctet, slice = at / kRows;
  if (slice >= slices.count) return;
  const std::int32_t row = slices.row[at];
  if (row < 0) return;
  const int slot = static_cast<int>(threadIdx.x) % kOctet, r = static_cast<int>(at % kRows);
  const std::int64_t first_quad = first_group[slice] * Streams::kGroupQuads;
  auto* const bytes = reinterpret_cast<std::uint8_t*>(words);
  constexpr int kBytes = sizeof(Bits);
  __shared__ Turns of_rows[kBuildThreads / kOctet];
  Turns& turns = of_rows[threadIdx.x / kOctet];
  in.find_turns(row, slices.chunk(slice), slot, turns);
  in.for_slot(row, slices.chunk(slice), slot, turns,
              [&](std::int32_t used, int move, std::int64_t entry) {
                const std::int64_t quad = first_quad + used;
                const std::int64_t word =
                    Streams::move_word(kBytes, quad, Streams::octet_of(r) * kOctet + slot);
                bytes[4 * word + Streams::step_of(r)] = static_cast<std::uint8_t>(move);
                if (entry < 0) return;
                const Streams::Bits to = Streams::value_bits(kBytes, quad, r, slot);
                *reinterpret_cast<Bits*>(bytes + 4 * to.word + to.shift / 8) =
                    static_cast<const Bits*>(in.a.values)[entry];
              });
}

__global__ void __launch_bounds__(kBuildThreads)
    find_starts(const Streams::Range* ranges, std::int64_t count, const Streams::Piece* pieces,
                const std::int64_t* first_group, const std::uint32_t* words, int value_bytes,
                Streams::Start* starts) {
  const std::int64_t index = thread_of_grid() / Streams::kLanes;
  if (index >= count) return;
  const int lane = static_cast<int>(threadIdx.x) % Streams::kLanes;
  const Streams::Range range = ranges[index];
  Streams::Start start;
  if (range.pieces > 0) {
    const std::int64_t first = first_group[pieces[range.first_piece].slice];
    for (std::int64_t quad = first * Streams::kGroupQuads;
         quad < range.first_group * Streams::kGroupQuads; ++quad) {
      const std::uint32_t moves = words[Streams::move_word(value_bytes, quad, lane)];
      for (int step = 0; step < Streams::kQuadSteps; ++step)
        start.u[step] = static_cast<std::uint16_t>(start.u[step] + Streams::move_of(moves, step));
    }
  }
  starts[index * Streams::kLanes + lane] = start;
}

// The pieces of each slice begin with number first_piece[slice].
struct Parts {
  Slices slices;
  const std::int32_t* first_piece;

  // visit(piece, place in the slice) for each part of a row.
  template <class Visit>
  __device__ void visit(std::int64_t row, Visit visit) const {
    for (std::int64_t chunk = 0; chunk < slices.chunks; ++chunk) {
      const std::int32_t place = slices.place[chunk * slices.rows + row];
      if (place < 0) continue;
      const std::int32_t slice = place / kRows;
      for (std::int32_t piece = first_piece[slice]; piece < first_piece[slice + 1]; ++piece)
        visit(piece, place % kRows);
    }
  }
};

__global__ void __launch_bounds__(kBuildThreads)
    count_parts(Parts in, std::int32_t* counts, std::int32_t* most) {
  const std::int64_t row = thread_of_grid();
  if (row >= in.slices.rows) return;
  std::int32_t count = 0;
  in.visit(row, [&](std::int32_t, std::int32_t) { ++count; });
  counts[row] = count;
  atomicMax(most, count);
}

__global__ void __launch_bounds__(kBuildThreads)
    write_parts(Parts in, const std::int32_t* part_ptr, std::int32_t* parts) {
  const std::int64_t row = thread_of_grid();
  if (row >= in.slices.rows) return;
  std::int32_t* to = parts + part_ptr[row];
  in.visit(row, [&](std::int32_t piece, std::int32_t place) { *to++ = piece * kRows + place; });
}

// With several bands each stream has one block, of `warps` ranges.
__global__ void __launch_bounds__(kBuildThreads)
    write_row_parts(Parts in, const Streams::Range* ranges, int warps, RowParts* row_parts) {
  const std::int64_t item = thread_of_grid();
  if (item >= in.slices.rows * in.slices.chunks) return;
  const std::int32_t place = in.slices.place[item];
  RowParts parts{};
  if (place >= 0) {
    const std::int32_t slice = place / kRows, piece = in.first_piece[slice];
    const std::int32_t first_of_block =
        ranges[std::int64_t{in.slices.stream[slice]} * warps].first_piece;
    parts = {static_cast<std::uint16_t>((piece - first_of_block) * kRows + place % kRows),
             static_cast<std::uint16_t>(in.first_piece[slice + 1] - piece)};
  }
  row_parts[item] = parts;
}

// A build of one matrix, step by step.
class Build {
 public:
  Build(const DeviceCsr& a, const Streams::Cut& cut, Device& device)
      : a_(a), device_(device), stream_(stream_of(device)), cut_(cut) {
    host_.rows = a.rows;
    host_.cols = a.cols;
    host_.nnz = a.nnz;
    host_.type = a.value_type;
    host_.warps = cut.warps;
    host_.lay_out(cut);
    if (a.rows * host_.chunks > std::numeric_limits<std::int32_t>::max())
      throw Error("slot streams on the device: rows times chunks are 2^31 or more");
  }

  DeviceStreams run() {
    if (host_.streams() > 0) sort_rows();
    if (host_.bands > 1 && !host_.bands_are_even(cut_.blocks)) {
      host_.lay_out(cut_.in_one_band());
      sort_rows();
    }
    host_.share_out(cut_.blocks);
    upload();
    if (!host_.slices.empty()) fill();
    if (host_.bands > 1) list_row_parts();
    else list_parts();
    out_.stats = host_.stats();
    out_.chunk_cols = host_.chunk_cols;
    out_.second_cols = host_.second_cols;
    out_.bands = host_.bands;
    out_.chunks = host_.chunks;
    out_.band_rows = host_.band_rows;
    out_.block_count = static_cast<std::int64_t>(host_.block_chunk.size());
    out_.piece_count = static_cast<std::int64_t>(host_.pieces.size());
    return std::move(out_);
  }

 private:
  Chunks matrix() const { return {a_, host_.chunk_cols, host_.second_cols, host_.copies}; }

  void sort_rows() {
    const std::int64_t items = a_.rows * host_.chunks;
    const int bits =
        kGroupBits +
        static_cast<int>(std::bit_width(static_cast<std::uint64_t>(host_.streams() - 1)));
    std::size_t bytes = 0;
    const auto sort = [&](void* temporary, const std::uint32_t* keys, std::uint32_t* sorted_keys,
                          const std::int32_t* rows, std::int32_t* sorted_rows) {
      SPMMBENCH_CUDA(cub::DeviceRadixSort::SortPairs(temporary, bytes, keys, sorted_keys, rows,
                                                     sorted_rows, static_cast<std::int32_t>(items),
                                                     0, bits, stream_));
    };
    sort(nullptr, nullptr, nullptr, nullptr, nullptr);
    MemoryLayout layout;
    const std::size_t each = items * sizeof(std::int32_t);
    const std::size_t keys_at = layout.add(each), rows_at = layout.add(each),
                      sorted_keys_at = layout.add(each), sorted_rows_at = layout.add(each),
                      temporary_at = layout.add(std::max<std::size_t>(bytes, 1));
    const Buffer memory = device_.allocate(layout.bytes());
    filled_ = device_.allocate(host_.streams() * sizeof(std::int32_t));
    place_ = device_.allocate(each);
    auto* const keys = array_at<std::uint32_t>(memory, keys_at);
    auto* const rows = array_at<std::int32_t>(memory, rows_at);
    auto* const sorted_keys = array_at<std::uint32_t>(memory, sorted_keys_at);
    auto* const sorted_rows = array_at<std::int32_t>(memory, sorted_rows_at);
    device_.fill_bytes(filled_.data(), 0, filled_.bytes());
    measure_rows<<<ctas_for(items * kOctet), kBuildThreads, 0, stream_>>>(
        matrix(), host_.chunks, host_.band_rows, keys, rows, filled_.as<std::int32_t>());
    SPMMBENCH_CUDA_LAUNCHED();
    sort(array_at<void>(memory, temporary_at), keys, sorted_keys, rows, sorted_rows);
    list(downloaded<std::int32_t>(filled_, device_), sorted_keys, sorted_rows);
  }

  void list(const std::vector<std::int32_t>& filled, const std::uint32_t* sorted_keys,
            const std::int32_t* sorted_rows) {
    constexpr unsigned char kNone = 0xFF;
    std::vector<std::int32_t> stream_of, first_of_stream(filled.size());
    for (std::size_t stream = 0; stream < filled.size(); ++stream) {
      first_of_stream[stream] = static_cast<std::int32_t>(stream_of.size());
      stream_of.insert(stream_of.end(), (filled[stream] + kRows - 1) / kRows,
                       static_cast<std::int32_t>(stream));
    }
    device_.fill_bytes(place_.data(), kNone, place_.bytes());
    const auto count = static_cast<std::int64_t>(stream_of.size());
    host_.slices.resize(count);
    rows_of_slice_.clear();
    if (count == 0) return;
    stream_of_ = device_.upload(stream_of);
    first_of_stream_ = device_.upload(first_of_stream);
    row_ = device_.allocate(count * kRows * sizeof(std::int32_t));
    groups_ = device_.allocate(count * sizeof(std::int32_t));
    list_slices<<<ctas_for(count * kRows), kBuildThreads, 0, stream_>>>(slices(), sorted_keys,
                                                                        sorted_rows);
    SPMMBENCH_CUDA_LAUNCHED();
    const std::vector<std::int32_t> groups = downloaded<std::int32_t>(groups_, device_);
    for (std::int64_t s = 0; s < count; ++s) {
      host_.slices[s].stream = stream_of[s];
      host_.slices[s].groups = groups[s];
      const std::int64_t before = (s - first_of_stream[stream_of[s]]) * kRows;
      rows_of_slice_.push_back(
          static_cast<std::int32_t>(std::min<std::int64_t>(kRows, filled[stream_of[s]] - before)));
    }
  }

  Slices slices() const {
    return {static_cast<std::int64_t>(host_.slices.size()),
            a_.rows,
            host_.chunks,
            host_.band_rows,
            stream_of_.as<std::int32_t>(),
            first_of_stream_.as<std::int32_t>(),
            filled_.as<std::int32_t>(),
            row_.as<std::int32_t>(),
            groups_.as<std::int32_t>(),
            place_.as<std::int32_t>()};
  }

  void upload() {
    out_.block_chunk = device_.upload(host_.block_chunk);
    out_.ranges = device_.upload(host_.ranges);
    out_.pieces = device_.upload(host_.pieces);
    std::vector<std::int64_t> first_group;
    std::int64_t group = 0;
    for (const Streams::Slice& slice : host_.slices) {
      first_group.push_back(group);
      group += slice.groups;
    }
    first_group_ = device_.upload(first_group);
    std::vector<std::int32_t> first_piece(host_.slices.size() + 1);
    for (const Streams::Piece& piece : host_.pieces) ++first_piece[piece.slice + 1];
    std::partial_sum(first_piece.begin(), first_piece.end(), first_piece.begin());
    first_piece_ = device_.upload(first_piece);
    out_.words =
        device_.allocate(group * Streams::group_words(host_.value_bytes()) * sizeof(std::uint32_t));
    out_.starts = device_.allocate(host_.ranges.size() * Streams::kLanes * sizeof(Streams::Start));
  }

  void fill() {
    device_.fill_bytes(out_.words.data(), 0, out_.words.bytes());
    const auto count = static_cast<std::int64_t>(host_.slices.size());
    visit_element(a_.value_type, [&](auto element) {
      using Bits = typename decltype(element)::Bits;
      if constexpr (sizeof(Bits) <= 2)
        fill_slices<Bits><<<ctas_for(count * kRows * kOctet), kBuildThreads, 0, stream_>>>(
            matrix(), slices(), first_group_.as<std::int64_t>(), out_.words.as<std::uint32_t>());
    });
    SPMMBENCH_CUDA_LAUNCHED();
    const auto ranges = static_cast<std::int64_t>(host_.ranges.size());
    find_starts<<<ctas_for(ranges * Streams::kLanes), kBuildThreads, 0, stream_>>>(
        out_.ranges.as<Streams::Range>(), ranges, out_.pieces.as<Streams::Piece>(),
        first_group_.as<std::int64_t>(), out_.words.as<std::uint32_t>(), host_.value_bytes(),
        out_.starts.as<Streams::Start>());
    SPMMBENCH_CUDA_LAUNCHED();
  }

  void list_parts() {
    std::int64_t all = 0;
    for (const Streams::Piece& piece : host_.pieces) all += rows_of_slice_[piece.slice];
    out_.part_ptr = device_.allocate((a_.rows + 1) * sizeof(std::int32_t));
    out_.parts = device_.allocate(all * sizeof(std::int32_t));
    device_.fill_bytes(out_.part_ptr.data(), 0, out_.part_ptr.bytes());
    if (all == 0) return device_.synchronize();
    const Parts in{slices(), first_piece_.as<std::int32_t>()};
    const Buffer counts = device_.allocate(a_.rows * sizeof(std::int32_t));
    const Buffer most = device_.allocate(sizeof(std::int32_t));
    device_.fill_bytes(most.data(), 0, most.bytes());
    count_parts<<<ctas_for(a_.rows), kBuildThreads, 0, stream_>>>(in, counts.as<std::int32_t>(),
                                                                  most.as<std::int32_t>());
    SPMMBENCH_CUDA_LAUNCHED();
    std::size_t bytes = 0;
    const auto sum = [&](void* temporary) {
      SPMMBENCH_CUDA(cub::DeviceScan::InclusiveSum(
          temporary, bytes, counts.as<const std::int32_t>(), out_.part_ptr.as<std::int32_t>() + 1,
          static_cast<std::int32_t>(a_.rows), stream_));
    };
    sum(nullptr);
    const Buffer temporary = device_.allocate(std::max<std::size_t>(bytes, 1));
    sum(temporary.data());
    write_parts<<<ctas_for(a_.rows), kBuildThreads, 0, stream_>>>(
        in, out_.part_ptr.as<std::int32_t>(), out_.parts.as<std::int32_t>());
    SPMMBENCH_CUDA_LAUNCHED();
    out_.most_parts = downloaded<std::int32_t>(most, device_)[0];
  }

  void list_row_parts() {
    const std::int64_t items = a_.rows * host_.chunks;
    out_.row_parts = device_.allocate(items * sizeof(RowParts));
    write_row_parts<<<ctas_for(items), kBuildThreads, 0, stream_>>>(
        {slices(), first_piece_.as<std::int32_t>()}, out_.ranges.as<Streams::Range>(), host_.warps,
        out_.row_parts.as<RowParts>());
    SPMMBENCH_CUDA_LAUNCHED();
    for (std::size_t r = 0; r < host_.ranges.size(); r += host_.warps) {
      const Streams::Range& last = host_.ranges[r + host_.warps - 1];
      out_.most_pieces = std::max<std::int64_t>(
          out_.most_pieces, last.first_piece + last.pieces - host_.ranges[r].first_piece);
    }
    device_.synchronize();
  }

  DeviceCsr a_;
  Device& device_;
  cudaStream_t stream_;
  Streams::Cut cut_;
  Streams host_;                             // without the rows of the slices and the words
  std::vector<std::int32_t> rows_of_slice_;  // rows of each slice
  Buffer filled_, place_, stream_of_, first_of_stream_, row_, groups_, first_group_, first_piece_;
  DeviceStreams out_;
};

}  // namespace

DeviceStreams build_streams(const DeviceCsr& a, const SlotStreams::Cut& cut, Device& device) {
  return Build(a, cut, device).run();
}

}  // namespace spmmbench::gather_mma
