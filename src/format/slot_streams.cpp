#include "format/slot_streams.hpp"

#include <omp.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>

#include "format/nonzeros.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

using Streams = SlotStreams;
constexpr int kRowSlots = Streams::kSlots / Streams::kRows;
constexpr int kOctet = 8;  // slots that load their rows of B together
constexpr int kOctets = Streams::kSlots / kOctet;
constexpr int kOctetRows = kOctet / kRowSlots;
constexpr int kBanks = Streams::kBankGroups;
constexpr int kMostForward = 255 - Streams::kMostBackward;
constexpr int kLookAhead = 32;  // nonzeros of a row that are considered in a step

struct Entry {
  std::uint16_t col;  // in the chunk
  std::uint16_t value;
};

// The entries of one row in one chunk, [begin, end) of the matrix's.
struct Run {
  std::int64_t begin, end;
};
Run run_of(const CsrMatrix& matrix, std::int64_t row, std::int64_t first_col, std::int64_t last) {
  const auto begin = matrix.col_idx.begin() + matrix.row_ptr[row];
  const auto end = matrix.col_idx.begin() + matrix.row_ptr[row + 1];
  const auto from = std::lower_bound(begin, end, first_col);
  return {from - matrix.col_idx.begin(),
          std::lower_bound(from, end, last) - matrix.col_idx.begin()};
}

// One row at work.
struct Row {
  std::vector<Entry> entries;
  std::vector<char> used;
  std::size_t oldest = 0;              // first that was not used
  std::array<int, kRowSlots> at = {};  // columns of its slots

  bool done() const { return oldest == entries.size(); }
  // Columns from the oldest nonzero to the farther slot.
  int lag() const {
    return done() ? 0 : *std::max_element(at.begin(), at.end()) - entries[oldest].col;
  }
  bool reaches(int col) const {
    return std::all_of(at.begin(), at.end(), [&](int from) {
      return col - from <= kMostForward && from - col <= Streams::kMostBackward;
    });
  }
};

// Picks, in every step, up to two nonzeros of each of four rows, from different groups of banks if
// that can be had.
class Octet {
 public:
  std::array<Row, kOctetRows> rows;

  void begin() {
    for (Row& row : rows) {
      row.used.assign(row.entries.size(), 0);
      if (!row.done()) row.at.fill(row.entries.front().col);
    }
  }
  bool done() const {
    return std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.done(); });
  }
  // The chosen entry of each slot; zeros where there is none.
  std::array<Entry, kOctet> step(std::int64_t& turns) {
    for (int r = 0; r < kOctetRows; ++r) find_options(r);
    holder_.fill(-1);
    // Rows that lag behind choose first.
    std::array<int, kOctetRows> order;
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return rows[a].lag() > rows[b].lag(); });
    for (int i = 0; i < kRowSlots; ++i)
      for (const int r : order) {
        unsigned visited = 0;
        match(r * kRowSlots + i, visited);
      }
    std::array<std::vector<int>, kOctetRows> picks;  // entries of a row
    load_.fill(0);
    for (int bank = 0; bank < kBanks; ++bank)
      if (holder_[bank] >= 0) {
        const int r = holder_[bank] / kRowSlots;
        pick(r, option_[r][bank], picks[r]);
      }
    for (int r = 0; r < kOctetRows; ++r)
      for (std::size_t i = rows[r].oldest; picks[r].size() < kRowSlots && i < last_[r]; ++i)
        if (rows[r].used[i] == 0) pick(r, static_cast<int>(i), picks[r]);
    std::array<Entry, kOctet> out{};
    for (int r = 0; r < kOctetRows; ++r) {
      Row& row = rows[r];
      while (!row.done() && row.used[row.oldest] != 0) ++row.oldest;
      std::sort(picks[r].begin(), picks[r].end());
      std::array<int, kRowSlots> slots{};  // those that lag behind first
      std::iota(slots.begin(), slots.end(), 0);
      std::stable_sort(slots.begin(), slots.end(),
                       [&](int a, int b) { return row.at[a] < row.at[b]; });
      for (std::size_t i = 0; i < kRowSlots; ++i) {
        Entry& chosen = out[r * kRowSlots + slots[i]];
        chosen = i < picks[r].size() ? row.entries[picks[r][i]] : zero(row, row.at[slots[i]]);
        row.at[slots[i]] = chosen.col;
      }
    }
    turns += *std::max_element(load_.begin(), load_.end());
    return out;
  }

 private:
  // The first nonzero of each bank that both slots of the row can reach.
  void find_options(int r) {
    const Row& row = rows[r];
    option_[r].fill(-1);
    order_count_[r] = 0;
    last_[r] = row.oldest;
    const std::size_t end = std::min(row.entries.size(), row.oldest + kLookAhead);
    for (std::size_t i = row.oldest; i < end; ++i) {
      const int col = row.entries[i].col;
      // No slot may leave the oldest nonzero farther behind than it can go back.
      if (col - row.entries[row.oldest].col > Streams::kMostBackward || !row.reaches(col)) break;
      last_[r] = i + 1;
      const int bank = col % kBanks;
      if (row.used[i] != 0 || option_[r][bank] >= 0) continue;
      option_[r][bank] = static_cast<int>(i);
      order_[r][order_count_[r]++] = bank;
    }
  }
  // Bipartite matching by augmenting paths, each row's oldest nonzeros first.
  bool match(int s, unsigned& visited) {
    const int r = s / kRowSlots;
    for (int i = 0; i < order_count_[r]; ++i) {
      const int bank = order_[r][i];
      if ((visited >> bank & 1U) != 0) continue;
      visited |= 1U << bank;
      if (holder_[bank] < 0 || match(holder_[bank], visited)) {
        holder_[bank] = s;
        return true;
      }
    }
    return false;
  }
  void pick(int r, int entry, std::vector<int>& picks) {
    rows[r].used[entry] = 1;
    picks.push_back(entry);
    ++load_[rows[r].entries[entry].col % kBanks];
  }
  // A zero in the least used bank: on the way to the next nonzero, or where the slot is.
  Entry zero(const Row& row, int at) {
    const auto bank =
        static_cast<int>(std::min_element(load_.begin(), load_.end()) - load_.begin());
    ++load_[bank];
    int col = at;
    if (!row.done())
      col = std::clamp<int>(row.entries[row.oldest].col - kBanks, at, at + kMostForward - kBanks);
    return {static_cast<std::uint16_t>(col - col % kBanks + bank), 0};
  }

  std::array<std::array<int, kBanks>, kOctetRows> option_, order_;
  std::array<int, kOctetRows> order_count_;
  std::array<std::size_t, kOctetRows> last_;  // end of the entries that can be picked
  std::array<int, kBanks> holder_;            // slot
  std::array<int, kBanks> load_;
};

// The row of a slice that a slot belongs to.
constexpr int row_of_slot(int slot) {
  const int octet = slot / kOctet, place = slot % kOctet;
  return place / kRowSlots * 2 + octet / 2 + 8 * (octet % 2);
}

std::int64_t first_col_of(const Streams& format, std::int32_t chunk) {
  return std::int64_t{chunk} * format.chunk_cols;
}

// The quads of one slice.
std::vector<std::uint32_t> fill_slice(const CsrMatrix& matrix, const Streams& format,
                                      const Streams::Slice& slice,
                                      std::array<std::uint16_t, Streams::kSlots>& starts,
                                      std::int64_t& turns) {
  const std::int64_t first_col = first_col_of(format, slice.chunk);
  std::array<Octet, kOctets> octets;
  for (int slot = 0; slot < Streams::kSlots; slot += kRowSlots) {
    const std::int32_t row = slice.rows[row_of_slot(slot)];
    if (row < 0) continue;
    const Run run = run_of(matrix, row, first_col, first_col + format.chunk_cols);
    auto& entries = octets[slot / kOctet].rows[slot % kOctet / kRowSlots].entries;
    for (std::int64_t i = run.begin; i < run.end; ++i)
      entries.push_back({static_cast<std::uint16_t>(matrix.col_idx[i] - first_col),
                         static_cast<std::uint16_t>(encode(format.type, matrix.values[i]))});
  }
  std::array<int, Streams::kSlots> at;
  for (Octet& octet : octets) octet.begin();
  for (int slot = 0; slot < Streams::kSlots; ++slot)
    starts[slot] = static_cast<std::uint16_t>(
        at[slot] = octets[slot / kOctet].rows[slot % kOctet / kRowSlots].at[slot % kRowSlots]);
  std::vector<std::uint32_t> words;
  for (int step = 0;
       step % Streams::kQuadSteps != 0 ||
       !std::all_of(octets.begin(), octets.end(), [](const Octet& octet) { return octet.done(); });
       ++step) {
    const int in_quad = step % Streams::kQuadSteps;
    if (in_quad == 0) words.resize(words.size() + Streams::kQuadWords);
    std::uint32_t* const quad = words.data() + words.size() - Streams::kQuadWords;
    for (int o = 0; o < kOctets; ++o) {
      const auto chosen = octets[o].step(turns);
      for (int s = 0; s < kOctet; ++s) {
        const int slot = o * kOctet + s, row = row_of_slot(slot);
        const auto move =
            static_cast<std::uint32_t>(chosen[s].col - at[slot] + Streams::kMostBackward);
        at[slot] = chosen[s].col;
        quad[slot] |= move << (8 * in_quad);
        quad[Streams::value_word(in_quad, row)] |= std::uint32_t{chosen[s].value}
                                                   << (16 * (slot % kRowSlots));
      }
    }
  }
  return words;
}

// Cuts the stream among the warps of the blocks.
void share_out(Streams& out, int blocks) {
  const std::int64_t total = out.quads();
  std::int64_t at = 0, slice_end = 0;
  std::int32_t slice = -1;
  constexpr std::int64_t kLeastQuads = 4;  // of a warp: less than that costs more to add up
  blocks = static_cast<int>(
      std::clamp<std::int64_t>(total / (kLeastQuads * out.warps), total > 0 ? 1 : 0, blocks));
  const auto next_slice = [&] {
    ++slice;
    slice_end += out.slices[slice].quads;
  };
  out.phase_ptr = {0};
  for (int block = 0; block < blocks; ++block) {
    const std::int64_t last = total * (block + 1) / blocks;
    while (at < last) {
      if (at == slice_end) next_slice();
      // The phase ends with the block's share or with the chunk.
      const std::int32_t chunk = out.slices[slice].chunk;
      std::int64_t phase_end = slice_end;
      for (std::size_t s = slice + 1;
           s < out.slices.size() && out.slices[s].chunk == chunk && phase_end < last; ++s)
        phase_end += out.slices[s].quads;
      phase_end = std::min(phase_end, last);
      const std::int64_t first = at, quads = phase_end - first;
      out.phase_chunk.push_back(chunk);
      for (int warp = 0; warp < out.warps; ++warp) {
        const std::int64_t warp_end = first + quads * (warp + 1) / out.warps;
        Streams::Range range{at, static_cast<std::int32_t>(warp_end - at),
                             static_cast<std::int32_t>(out.pieces.size()), 0};
        while (at < warp_end) {
          if (at == slice_end) next_slice();
          const std::int64_t end = std::min(warp_end, slice_end);
          out.pieces.push_back({slice, static_cast<std::int32_t>(end - at)});
          ++range.pieces;
          at = end;
        }
        out.ranges.push_back(range);
      }
    }
    out.phase_ptr.push_back(static_cast<std::int32_t>(out.phase_chunk.size()));
  }
}

}  // namespace

std::int64_t SlotStreams::quads() const {
  return std::accumulate(slices.begin(), slices.end(), std::int64_t{0},
                         [](std::int64_t sum, const Slice& slice) { return sum + slice.quads; });
}

namespace {

// The chunks and the rows of their slices.
Streams sort_rows(const CsrMatrix& matrix) {
  Streams out;
  out.rows = matrix.rows;
  out.cols = matrix.cols;
  out.nnz = matrix.nnz();
  const std::int64_t count = Streams::chunks(matrix.cols);
  if (count == 0) return out;
  out.chunk_cols =
      static_cast<std::int32_t>((matrix.cols + count * kBanks - 1) / (count * kBanks) * kBanks);
  struct Length {
    std::int32_t row;
    std::int64_t entries;
  };
  // Threads take runs of rows, so that each chunk's rows stay in their order.
  const int threads = omp_get_max_threads();
  std::vector<std::vector<std::vector<Length>>> found(threads);
#pragma omp parallel for schedule(static, 1)
  for (int thread = 0; thread < threads; ++thread) {
    found[thread].resize(count);
    for (std::int64_t row = matrix.rows * thread / threads;
         row < matrix.rows * (thread + 1) / threads; ++row)
      for (std::int64_t at = matrix.row_ptr[row]; at < matrix.row_ptr[row + 1];) {
        const std::int32_t chunk = matrix.col_idx[at] / out.chunk_cols;
        const std::int64_t first_col = first_col_of(out, chunk);
        const Run run = run_of(matrix, row, first_col, first_col + out.chunk_cols);
        found[thread][chunk].push_back({static_cast<std::int32_t>(row), run.end - run.begin});
        at = run.end;
      }
  }
  for (std::int64_t chunk = 0; chunk < count; ++chunk) {
    std::vector<Length> lengths;
    for (const auto& of_thread : found)
      lengths.insert(lengths.end(), of_thread[chunk].begin(), of_thread[chunk].end());
    std::stable_sort(lengths.begin(), lengths.end(),
                     [](const Length& a, const Length& b) { return a.entries > b.entries; });
    for (std::size_t first = 0; first < lengths.size(); first += Streams::kRows) {
      Streams::Slice slice;
      slice.chunk = static_cast<std::int32_t>(chunk);
      slice.rows.fill(-1);
      for (std::size_t i = first; i < std::min(lengths.size(), first + Streams::kRows); ++i)
        slice.rows[i - first] = lengths[i].row;
      out.slices.push_back(slice);
    }
  }
  return out;
}

}  // namespace

SlotStreams SlotStreams::build(const CsrMatrix& matrix, ElementType type, int blocks, int warps) {
  SlotStreams out = sort_rows(matrix);
  out.type = type;
  out.warps = warps;
  const auto count = static_cast<std::int64_t>(out.slices.size());
  std::vector<std::vector<std::uint32_t>> words(count);
  std::vector<std::array<std::uint16_t, kSlots>> starts(count);
  std::int64_t turns = 0;
#pragma omp parallel for schedule(dynamic, 4) reduction(+ : turns)
  for (std::int64_t s = 0; s < count; ++s) {
    words[s] = fill_slice(matrix, out, out.slices[s], starts[s], turns);
    out.slices[s].quads = static_cast<std::int32_t>(words[s].size() / kQuadWords);
  }
  out.bank_turns = turns;
  share_out(out, blocks);
  out.words.resize(out.quads() * kQuadWords);
  out.starts.resize(out.pieces.size() * kSlots);
  std::vector<std::int64_t> first_quad(count), first_piece(count);
  std::int64_t quad = 0;
  for (std::int64_t s = 0; s < count; ++s) {
    first_quad[s] = quad;
    quad += out.slices[s].quads;
  }
  for (std::size_t p = out.pieces.size(); p-- > 0;)
    first_piece[out.pieces[p].slice] = static_cast<std::int64_t>(p);
#pragma omp parallel for schedule(dynamic, 4)
  for (std::int64_t s = 0; s < count; ++s) {
    std::copy(words[s].begin(), words[s].end(), out.words.begin() + first_quad[s] * kQuadWords);
    std::array<std::uint16_t, kSlots> at = starts[s];
    std::int64_t piece = first_piece[s];
    for (std::int32_t q = 0, end = 0; q < out.slices[s].quads; ++q) {
      if (q == end) {
        std::copy(at.begin(), at.end(), out.starts.begin() + piece * kSlots);
        end += out.pieces[piece++].quads;
      }
      for (int step = 0; step < kQuadSteps; ++step)
        for (int slot = 0; slot < kSlots; ++slot)
          at[slot] =
              static_cast<std::uint16_t>(at[slot] + move_of(words[s][q * kQuadWords + slot], step));
    }
    words[s] = {};
  }
  return out;
}

CsrMatrix SlotStreams::unpack() const {
  std::vector<Nonzero> all;
  const std::uint32_t* quad = words.data();
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    const Slice& slice = slices[pieces[p].slice];
    std::array<int, kSlots> at;
    for (int lane = 0; lane < kSlots; ++lane) at[lane] = starts[p * kSlots + lane];
    for (int q = 0; q < pieces[p].quads; ++q, quad += kQuadWords)
      for (int step = 0; step < kQuadSteps; ++step)
        for (int lane = 0; lane < kSlots; ++lane) {
          at[lane] += move_of(quad[lane], step);
          const int row = row_of_slot(lane);
          const std::uint32_t word = quad[value_word(step, row)];
          const float value = decode(type, word >> (16 * (lane % kRowSlots)) & 0xFFFFU);
          if (value != 0)
            all.push_back({slice.rows[row],
                           static_cast<std::int32_t>(first_col_of(*this, slice.chunk)) + at[lane],
                           value});
        }
  }
  return csr_of(rows, cols, std::move(all));
}

FormatStats SlotStreams::stats() const {
  FormatStats out;
  const std::int64_t count = quads(), entries = nnz;
  out.name = "slot_streams";
  out.stored = count * kQuadSteps * kSlots;
  out.index_bytes = count * kMoveWords * std::int64_t{4} +
                    static_cast<std::int64_t>(slices.size()) * kSlots * std::int64_t{2};
  out.bytes = out.index_bytes + out.stored * 2;
  out.tiles = count;
  out.windows = static_cast<std::int64_t>(slices.size());
  if (count == 0) return out;
  out.fill = static_cast<double>(entries) / static_cast<double>(out.stored);
  out.nnz_per_tile = static_cast<double>(entries) / static_cast<double>(out.tiles);
  out.nnz_per_window = static_cast<double>(entries) / static_cast<double>(out.windows);
  std::int32_t most = 0;
  for (const Slice& slice : slices) most = std::max(most, slice.quads);
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
