#include "format/slot_streams.hpp"

#include <omp.h>

#include <algorithm>
#include <numeric>

#include "core/parallel.hpp"
#include "format/nonzeros.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

using Streams = SlotStreams;
constexpr int kOctet = Streams::kOctet;

// The slots of one row in one chunk, filled from left to right.
class Dealer {
 public:
  // Visits each entry that leads to the nonzero in column `col` of the chunk: zeros on the way,
  // then itself. `visit(slot, at, move, last)`: the at-th entry of that slot.
  template <class Visit>
  void deal(int col, Visit&& visit) {
    const int slot = col % kOctet;
    int left = col / kOctet - u_[slot];
    u_[slot] += left;
    for (; left > Streams::kMostMove; left -= Streams::kMostMove)
      visit(slot, used_[slot]++, Streams::kMostMove, false);
    visit(slot, used_[slot]++, left, true);
  }
  // As many as hold the longest slot.
  std::int32_t groups() const {
    const std::int32_t quads = *std::max_element(used_.begin(), used_.end());
    return (quads + Streams::kGroupQuads - 1) / Streams::kGroupQuads;
  }

 private:
  std::array<int, kOctet> u_{};
  std::array<std::int32_t, kOctet> used_{};
};

// The entries of `row` that lie in a chunk, from entry `at` on: calls visit(column in the chunk,
// entry) and returns the first entry behind the chunk.
template <class Visit>
std::int64_t for_chunk(const CsrMatrix& matrix, std::int64_t row, std::int64_t at,
                       std::int64_t first_col, std::int64_t last_col, Visit&& visit) {
  for (; at < matrix.row_ptr[row + 1] && matrix.col_idx[at] < last_col; ++at)
    visit(static_cast<int>(matrix.col_idx[at] - first_col), at);
  return at;
}

std::int64_t first_col_of(const Streams& format, std::int32_t chunk) {
  return std::int64_t{chunk} * format.chunk_cols;
}

// The chunks and the rows of their slices.
Streams sort_rows(const CsrMatrix& matrix) {
  Streams out;
  out.rows = matrix.rows;
  out.cols = matrix.cols;
  out.nnz = matrix.nnz();
  const std::int64_t count = Streams::chunks(matrix.cols);
  if (count == 0) return out;
  out.chunk_cols = Streams::chunk_columns(matrix.cols);
  struct Length {
    std::int32_t row, groups;
  };
  // Threads take runs of rows, so that each chunk's rows stay in their order.
  const int threads = omp_get_max_threads();
  std::vector<std::vector<std::vector<Length>>> found(threads);
  const auto measure = [&](int thread) {
    found[thread].resize(count);
    for (std::int64_t row = matrix.rows * thread / threads;
         row < matrix.rows * (thread + 1) / threads; ++row)
      for (std::int64_t at = matrix.row_ptr[row]; at < matrix.row_ptr[row + 1];) {
        const std::int32_t chunk = matrix.col_idx[at] / out.chunk_cols;
        const std::int64_t first_col = first_col_of(out, chunk);
        Dealer dealer;
        at = for_chunk(matrix, row, at, first_col, first_col + out.chunk_cols,
                       [&](int col, std::int64_t) { dealer.deal(col, [](auto...) {}); });
        found[thread][chunk].push_back({static_cast<std::int32_t>(row), dealer.groups()});
      }
  };
  ExceptionTrap trap;
#pragma omp parallel for schedule(static, 1)
  for (int thread = 0; thread < threads; ++thread) trap.run([&] { measure(thread); });
  trap.rethrow();
  for (std::int64_t chunk = 0; chunk < count; ++chunk) {
    std::vector<Length> lengths;
    for (const auto& of_thread : found)
      lengths.insert(lengths.end(), of_thread[chunk].begin(), of_thread[chunk].end());
    std::stable_sort(lengths.begin(), lengths.end(),
                     [](const Length& a, const Length& b) { return a.groups > b.groups; });
    for (std::size_t first = 0; first < lengths.size(); first += Streams::kRows) {
      Streams::Slice slice;
      slice.chunk = static_cast<std::int32_t>(chunk);
      slice.groups = lengths[first].groups;
      slice.rows.fill(-1);
      for (std::size_t i = first; i < std::min(lengths.size(), first + Streams::kRows); ++i)
        slice.rows[i - first] = lengths[i].row;
      out.slices.push_back(slice);
    }
  }
  return out;
}

// Writes one slice to `words`, which are zero, from group `first_group` on.
void fill_slice(const CsrMatrix& matrix, const Streams& format, const Streams::Slice& slice,
                std::int64_t first_group, std::vector<std::uint32_t>& words) {
  const std::int64_t first_col = first_col_of(format, slice.chunk);
  for (int r = 0; r < Streams::kRows; ++r) {
    const std::int32_t row = slice.rows[r];
    if (row < 0) continue;
    const auto begin = matrix.col_idx.begin() + matrix.row_ptr[row];
    const auto end = matrix.col_idx.begin() + matrix.row_ptr[row + 1];
    const std::int64_t first = std::lower_bound(begin, end, first_col) - matrix.col_idx.begin();
    Dealer dealer;
    for_chunk(matrix, row, first, first_col, first_col + format.chunk_cols,
              [&](int col, std::int64_t i) {
                dealer.deal(col, [&](int slot, std::int32_t at, int move, bool last) {
                  const std::int64_t quad = first_group * Streams::kGroupQuads + at;
                  words[format.move_word(quad, Streams::octet_of(r) * kOctet + slot)] |=
                      static_cast<std::uint32_t>(move) << (8 * Streams::step_of(r));
                  if (!last) return;
                  const Streams::Bits bits = format.value_bits(quad, r, slot);
                  words[bits.word] |= encode(format.type, matrix.values[i]) << bits.shift;
                });
              });
  }
}

// How many of the blocks each chunk gets: one at least, and the others where a block has most to
// do.
std::vector<int> share_blocks(const std::vector<std::int64_t>& groups, std::int64_t blocks) {
  std::vector<int> shares(groups.size());
  for (std::size_t chunk = 0; chunk < groups.size(); ++chunk) shares[chunk] = groups[chunk] > 0;
  for (std::int64_t left = blocks - std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
       left > 0; --left) {
    std::size_t most = 0;
    for (std::size_t chunk = 1; chunk < groups.size(); ++chunk)
      if (groups[chunk] * std::max(shares[most], 1) > groups[most] * std::max(shares[chunk], 1))
        most = chunk;
    ++shares[most];
  }
  return shares;
}

// Where the slots are when the groups before `last` of the slice that begins at `first` are done.
void find_starts(const Streams& format, std::int64_t first, std::int64_t last,
                 Streams::Start* starts) {
  for (std::int64_t q = first * Streams::kGroupQuads; q < last * Streams::kGroupQuads; ++q)
    for (int lane = 0; lane < Streams::kLanes; ++lane)
      for (int step = 0; step < Streams::kQuadSteps; ++step)
        starts[lane].u[step] = static_cast<std::uint16_t>(
            starts[lane].u[step] + Streams::move_of(format.words[format.move_word(q, lane)], step));
}

}  // namespace

std::int32_t SlotStreams::chunk_columns(std::int64_t cols) {
  const std::int64_t octets = chunks(cols) * kOctet;
  return octets == 0 ? 0 : static_cast<std::int32_t>((cols + octets - 1) / octets * kOctet);
}

std::int64_t SlotStreams::groups() const {
  return std::accumulate(slices.begin(), slices.end(), std::int64_t{0},
                         [](std::int64_t sum, const Slice& slice) { return sum + slice.groups; });
}

// Cuts the stream among the warps of the blocks.
void SlotStreams::share_out(std::int64_t most_blocks) {
  const std::int64_t total = this->groups();
  if (total == 0) return;
  std::vector<std::int64_t> groups(chunks(cols));
  for (const Slice& slice : slices) groups[slice.chunk] += slice.groups;
  const std::vector<int> shares =
      share_blocks(groups, std::clamp<std::int64_t>(total / warps, 1, most_blocks));
  std::int64_t at = 0, chunk_begin = 0, slice_end = 0;
  std::int32_t slice = -1;
  for (std::size_t chunk = 0; chunk < groups.size(); chunk_begin += groups[chunk++]) {
    const std::int64_t count = std::int64_t{shares[chunk]} * warps;
    block_chunk.insert(block_chunk.end(), shares[chunk], static_cast<std::int32_t>(chunk));
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t range_end = chunk_begin + groups[chunk] * (r + 1) / count;
      Range range{at, static_cast<std::int32_t>(range_end - at),
                  static_cast<std::int32_t>(pieces.size()), 0};
      while (at < range_end) {
        if (at == slice_end) slice_end += slices[++slice].groups;
        const std::int64_t end = std::min(range_end, slice_end);
        pieces.push_back({slice, static_cast<std::int32_t>(end - at)});
        ++range.pieces;
        at = end;
      }
      ranges.push_back(range);
    }
  }
}

SlotStreams SlotStreams::build(const CsrMatrix& matrix, ElementType type, int blocks, int warps) {
  SlotStreams out = sort_rows(matrix);
  out.type = type;
  out.warps = warps;
  out.share_out(blocks);
  const auto count = static_cast<std::int64_t>(out.slices.size());
  std::vector<std::int64_t> first_group(count);
  std::int64_t group = 0;
  for (std::int64_t s = 0; s < count; group += out.slices[s++].groups) first_group[s] = group;
  out.words.resize(group * group_words(out.value_bytes()));
#pragma omp parallel for schedule(dynamic, 4)
  for (std::int64_t s = 0; s < count; ++s)
    fill_slice(matrix, out, out.slices[s], first_group[s], out.words);
  out.starts.resize(out.ranges.size() * kLanes);
#pragma omp parallel for schedule(dynamic, 4)
  for (std::int64_t r = 0; r < static_cast<std::int64_t>(out.ranges.size()); ++r)
    if (const Range& range = out.ranges[r]; range.pieces > 0)
      find_starts(out, first_group[out.pieces[range.first_piece].slice], range.first_group,
                  out.starts.data() + r * kLanes);
  return out;
}

CsrMatrix SlotStreams::unpack() const {
  std::vector<Nonzero> all;
  for (std::size_t r = 0; r < ranges.size(); ++r) {
    std::int64_t quad = ranges[r].first_group * kGroupQuads;
    for (std::int32_t p = 0; p < ranges[r].pieces; ++p) {
      const Piece& piece = pieces[ranges[r].first_piece + p];
      const Slice& slice = slices[piece.slice];
      std::array<Start, kLanes> at{};
      if (p == 0) std::copy_n(starts.begin() + r * kLanes, kLanes, at.begin());
      for (const std::int64_t end = quad + piece.groups * kGroupQuads; quad < end; ++quad)
        for (int row = 0; row < kRows; ++row)
          for (int slot = 0; slot < kOctet; ++slot) {
            const int lane = octet_of(row) * kOctet + slot, step = step_of(row);
            std::uint16_t& u = at[lane].u[step];
            u = static_cast<std::uint16_t>(u + move_of(words[move_word(quad, lane)], step));
            const Bits bits = value_bits(quad, row, slot);
            const std::uint32_t mask = (1U << (8 * value_bytes())) - 1;
            const float value = decode(type, words[bits.word] >> bits.shift & mask);
            if (value != 0)
              all.push_back(
                  {slice.rows[row],
                   static_cast<std::int32_t>(first_col_of(*this, slice.chunk)) + u * kOctet + slot,
                   value});
          }
    }
  }
  return csr_of(rows, cols, std::move(all));
}

FormatStats SlotStreams::stats() const {
  FormatStats out;
  const std::int64_t count = groups(), entries = nnz;
  out.name = "slot_streams";
  out.stored = count * kGroupQuads * kQuadSlots;
  out.index_bytes = out.stored;
  out.bytes = out.index_bytes + out.stored * value_bytes();
  out.tiles = count;
  out.windows = static_cast<std::int64_t>(slices.size());
  if (count == 0) return out;
  out.fill = static_cast<double>(entries) / static_cast<double>(out.stored);
  out.nnz_per_tile = static_cast<double>(entries) / static_cast<double>(out.tiles);
  out.nnz_per_window = static_cast<double>(entries) / static_cast<double>(out.windows);
  std::int32_t most = 0;
  for (const Slice& slice : slices) most = std::max(most, slice.groups);
  out.window_imbalance =
      static_cast<double>(most) * static_cast<double>(out.windows) / static_cast<double>(count);
  return out;
}

namespace {

class SlotStreamsFormat final : public Format {
 public:
  std::string name() const override { return "slot_streams"; }
  std::string summary() const override {
    return "nonzeros in the order in which tensor cores multiply gathered rows of B (gather_mma)";
  }
  FormatStats analyze(const CsrMatrix& matrix, const Options& /*options*/) const override {
    return SlotStreams::build(matrix, ElementType::f16, 1, 1).stats();
  }
};

SPMMBENCH_REGISTER_FORMAT(SlotStreamsFormat);

}  // namespace
}  // namespace spmmbench
