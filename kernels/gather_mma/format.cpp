#include "gather_mma/format.hpp"

#include <omp.h>

#include <algorithm>
#include <numeric>

#include "core/parallel.hpp"
#include "format/nonzeros.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::gather_mma {
namespace {

using Streams = SlotStreams;
constexpr int kOctet = Streams::kOctet;

// The nonzeros first .. last of a row, which lie in a chunk.
struct Run {
  std::int64_t first, last;
};
Run run_in_chunk(const CsrMatrix& matrix, std::int64_t row, std::int64_t at,
                 std::int64_t last_col) {
  Run run{at, at};
  while (run.last < matrix.row_ptr[row + 1] && matrix.col_idx[run.last] < last_col) ++run.last;
  return run;
}

// The slots of one row in one chunk.
class Dealer {
 public:
  // Visits each entry of the slots: visit(slot, at, move, i) for the at-th of a slot, which is
  // nonzero i, or a zero on the way where i is -1.
  template <class Visit>
  void deal(const CsrMatrix& matrix, const Run& run, std::int64_t first_col, const Streams& format,
            Visit&& visit) {
    const auto column = [&](std::int64_t i) {
      return static_cast<int>(matrix.col_idx[i] - first_col);
    };
    Turns turns{};
    if (format.copies > 1) {
      for (std::int64_t i = run.first; i < run.last; ++i)
        if (const int slot = Turns::slot_of(column(i)); column(i) < format.second_cols)
          ++turns.count[slot][Turns::turn_of(column(i))];
        else ++turns.fixed[slot];
      turns.level();
    }
    for (int copy = 0; copy < format.copies; ++copy) {
      Turns seen{};
      for (std::int64_t i = run.first; i < run.last; ++i) {
        const int slot = Turns::slot_of(column(i)), turn = Turns::turn_of(column(i));
        const bool moves =
            column(i) < format.second_cols && seen.count[slot][turn]++ < turns.moved[slot][turn];
        if (moves != (copy == 1)) continue;
        const int line = column(i) / kOctet;
        if (moves)
          put(Turns::second_slot(slot, turn), Streams::lines(format.chunk_cols) + line, i, visit);
        else put(slot, line, i, visit);
      }
    }
  }
  // As many as hold the longest slot.
  std::int32_t groups() const {
    const std::int32_t quads = *std::max_element(used_.begin(), used_.end());
    return (quads + Streams::kGroupQuads - 1) / Streams::kGroupQuads;
  }

 private:
  using Turns = Streams::Turns;

  template <class Visit>
  void put(int slot, int line, std::int64_t i, Visit& visit) {
    int left = line - u_[slot];
    u_[slot] = line;
    for (; left > Streams::kMostMove; left -= Streams::kMostMove)
      visit(slot, used_[slot]++, Streams::kMostMove, std::int64_t{-1});
    visit(slot, used_[slot]++, left, i);
  }

  std::array<int, kOctet> u_{};
  std::array<std::int32_t, kOctet> used_{};
};

// The first column of the chunk that a stream belongs to.
std::int64_t first_col_of(const Streams& format, std::int64_t stream) {
  return stream % format.chunks * format.chunk_cols;
}

struct Length {
  std::int32_t row, groups;
};

// The rows that have entries in each chunk, in order: [chunk].
std::vector<std::vector<Length>> measure_rows(const CsrMatrix& matrix, const Streams& out) {
  // Threads take runs of rows, so that each chunk's rows stay in their order.
  const int threads = omp_get_max_threads();
  std::vector<std::vector<std::vector<Length>>> found(threads);
  const auto measure = [&](int thread) {
    found[thread].resize(out.chunks);
    for (std::int64_t row = matrix.rows * thread / threads;
         row < matrix.rows * (thread + 1) / threads; ++row)
      for (std::int64_t at = matrix.row_ptr[row]; at < matrix.row_ptr[row + 1];) {
        const std::int32_t chunk = matrix.col_idx[at] / out.chunk_cols;
        const std::int64_t first_col = first_col_of(out, chunk);
        const Run run = run_in_chunk(matrix, row, at, first_col + out.chunk_cols);
        Dealer dealer;
        dealer.deal(matrix, run, first_col, out, [](auto...) {});
        at = run.last;
        found[thread][chunk].push_back({static_cast<std::int32_t>(row), dealer.groups()});
      }
  };
  ExceptionTrap trap;
#pragma omp parallel for schedule(static, 1)
  for (int thread = 0; thread < threads; ++thread) trap.run([&] { measure(thread); });
  trap.rethrow();
  std::vector<std::vector<Length>> all(out.chunks);
  for (const auto& of_thread : found)
    for (std::int64_t chunk = 0; chunk < out.chunks; ++chunk)
      all[chunk].insert(all[chunk].end(), of_thread[chunk].begin(), of_thread[chunk].end());
  return all;
}

// The bands, the chunks and the rows of their slices.
Streams sort_rows(const CsrMatrix& matrix, const Streams::Cut& cut) {
  Streams out;
  out.rows = matrix.rows;
  out.cols = matrix.cols;
  out.nnz = matrix.nnz();
  out.lay_out(cut);
  if (out.streams() == 0) return out;
  std::vector<std::vector<Length>> lengths(out.streams());
  const std::vector<std::vector<Length>> of_chunk = measure_rows(matrix, out);
  for (std::int64_t chunk = 0; chunk < out.chunks; ++chunk)
    for (const Length& length : of_chunk[chunk])
      lengths[length.row / out.band_rows * out.chunks + chunk].push_back(length);
  for (std::size_t stream = 0; stream < lengths.size(); ++stream) {
    std::vector<Length>& of_stream = lengths[stream];
    std::stable_sort(of_stream.begin(), of_stream.end(),
                     [](const Length& a, const Length& b) { return a.groups > b.groups; });
    for (std::size_t first = 0; first < of_stream.size(); first += Streams::kRows) {
      Streams::Slice slice;
      slice.stream = static_cast<std::int32_t>(stream);
      slice.groups = of_stream[first].groups;
      slice.rows.fill(-1);
      for (std::size_t i = first; i < std::min(of_stream.size(), first + Streams::kRows); ++i)
        slice.rows[i - first] = of_stream[i].row;
      out.slices.push_back(slice);
    }
  }
  return out;
}

// Writes one slice to `words`, which are zero, from group `first_group` on.
void fill_slice(const CsrMatrix& matrix, const Streams& format, const Streams::Slice& slice,
                std::int64_t first_group, std::vector<std::uint32_t>& words) {
  const std::int64_t first_col = first_col_of(format, slice.stream);
  for (int r = 0; r < Streams::kRows; ++r) {
    const std::int32_t row = slice.rows[r];
    if (row < 0) continue;
    const auto begin = matrix.col_idx.begin() + matrix.row_ptr[row];
    const auto end = matrix.col_idx.begin() + matrix.row_ptr[row + 1];
    const std::int64_t first = std::lower_bound(begin, end, first_col) - matrix.col_idx.begin();
    Dealer dealer;
    dealer.deal(matrix, run_in_chunk(matrix, row, first, first_col + format.chunk_cols), first_col,
                format, [&](int slot, std::int32_t at, int move, std::int64_t i) {
                  const std::int64_t quad = first_group * Streams::kGroupQuads + at;
                  words[format.move_word(quad, Streams::octet_of(r) * kOctet + slot)] |=
                      static_cast<std::uint32_t>(move) << (8 * Streams::step_of(r));
                  if (i < 0) return;
                  const Streams::Bits bits = format.value_bits(quad, r, slot);
                  words[bits.word] |= encode(format.type, matrix.values[i]) << bits.shift;
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

void SlotStreams::lay_out(const Cut& cut) {
  copies = cut.copies;
  bands = chunks = band_rows = chunk_cols = second_cols = 0;
  if (rows == 0 || cols == 0) return;
  chunks = std::max(cut.chunks, least_chunks(cols));
  const std::int64_t octets = chunks * kOctet;
  chunk_cols = static_cast<std::int32_t>((cols + octets - 1) / octets * kOctet);
  second_cols = second_cols_of(chunk_cols, copies, cut.second_part);
  band_rows = (rows + cut.bands - 1) / cut.bands;
  bands = (rows + band_rows - 1) / band_rows;
}

bool SlotStreams::bands_are_even(std::int64_t blocks) const {
  // What a block of one band loses to others, since its sums go through memory and a second kernel.
  constexpr std::int64_t kJoinGroups = 20;
  const std::int64_t total = this->groups();
  if (total == 0) return false;
  std::vector<std::int64_t> groups(streams());
  for (const Slice& slice : slices) groups[slice.stream] += slice.groups;
  return *std::max_element(groups.begin(), groups.end()) <= total / blocks + kJoinGroups;
}

std::int64_t SlotStreams::groups() const {
  return std::accumulate(slices.begin(), slices.end(), std::int64_t{0},
                         [](std::int64_t sum, const Slice& slice) { return sum + slice.groups; });
}

// Cuts the streams among the warps of the blocks.
void SlotStreams::share_out(std::int64_t most_blocks) {
  const std::int64_t total = this->groups();
  if (total == 0) return;
  std::vector<std::int64_t> groups(streams());
  for (const Slice& slice : slices) groups[slice.stream] += slice.groups;
  const std::vector<int> shares =
      bands > 1 ? std::vector<int>(groups.size(), 1)
                : share_blocks(groups, std::clamp<std::int64_t>(total / warps, 1, most_blocks));
  std::int64_t at = 0, stream_begin = 0, slice_end = 0;
  std::int32_t slice = -1;
  for (std::size_t stream = 0; stream < groups.size(); stream_begin += groups[stream++]) {
    const std::int64_t count = std::int64_t{shares[stream]} * warps;
    block_chunk.insert(block_chunk.end(), shares[stream],
                       static_cast<std::int32_t>(static_cast<std::int64_t>(stream) % chunks));
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t range_end = stream_begin + groups[stream] * (r + 1) / count;
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

SlotStreams SlotStreams::build(const CsrMatrix& matrix, ElementType type, const Cut& cut) {
  SlotStreams out = sort_rows(matrix, cut);
  if (out.bands > 1 && !out.bands_are_even(cut.blocks)) out = sort_rows(matrix, cut.in_one_band());
  out.type = type;
  out.warps = cut.warps;
  out.share_out(cut.blocks);
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
              all.push_back({slice.rows[row],
                             static_cast<std::int32_t>(first_col_of(*this, slice.stream)) +
                                 column_at(chunk_cols, u, slot),
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
    return SlotStreams::build(matrix, ElementType::f16, {}).stats();
  }
};

SPMMBENCH_REGISTER_FORMAT(SlotStreamsFormat);

}  // namespace
}  // namespace spmmbench::gather_mma
