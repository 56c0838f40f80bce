#include "bitmap_dense/format.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "bitmap_dense/bitmap_bits.hpp"
#include "core/parallel.hpp"
#include "format/nonzeros.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::bitmap_dense {
namespace {

using Panels = BitmapPanels;
constexpr int kLanes = Panels::kLanes;
constexpr int kLanePositions = Panels::kLanePositions;

struct Cell {
  int row, col;
};
Cell cell_at(int lane, int position) {
  const int fragment = position / 8, reg = position / 2 % 4;
  return {lane / 4 + 8 * (reg % 2), fragment * 16 + lane % 4 * 2 + 8 * (reg / 2) + position % 2};
}

// The elements of one segment, by lane.
struct Entries {
  std::vector<std::uint32_t> present;  // [step][lane], a bit for each position
  std::vector<std::uint16_t> values;   // [step][lane][position]
};

Entries gather(const CsrMatrix& matrix, ElementType type, const Panels::Range& range) {
  Entries out;
  out.present.resize(std::size_t(range.steps) * kLanes);
  out.values.resize(out.present.size() * kLanePositions);
  const int step_cols = Panels::kStepCols * Panels::columns_in(type);
  const std::int64_t first_row = std::int64_t{range.panel} * Panels::kPanelRows;
  const std::int64_t last_row = std::min(matrix.rows, first_row + Panels::kPanelRows);
  const std::int64_t first_col = std::int64_t{range.first_step} * step_cols;
  const std::int64_t last_col = first_col + std::int64_t{range.steps} * step_cols;
  for (std::int64_t row = first_row; row < last_row; ++row) {
    const auto begin = matrix.col_idx.begin() + matrix.row_ptr[row];
    const auto end = matrix.col_idx.begin() + matrix.row_ptr[row + 1];
    for (auto at = std::lower_bound(begin, end, first_col); at != end && *at < last_col; ++at) {
      const auto col = static_cast<int>(*at - first_col);
      const bitmap_bits::Place place = bitmap_bits::place_of(
          static_cast<int>(row - first_row), col % step_cols / Panels::columns_in(type));
      const std::size_t word = std::size_t(col / step_cols) * kLanes + place.lane;
      out.present[word] |= 1U << place.position;
      out.values[word * kLanePositions + place.position] |=
          encode(type, matrix.values[at - matrix.col_idx.begin()])
          << 8 * (col % Panels::columns_in(type));
    }
  }
  return out;
}

// Which lane reads which queue, and how far each queue is consumed.
struct Readers {
  std::array<int, kLanes> queue;    // of a lane
  std::array<int, kLanes> level{};  // of a queue

  Readers() { std::iota(queue.begin(), queue.end(), 0); }
  // The least consumed queue goes to the lane with the largest demand. Returns, for each lane, the
  // lane that had its new queue before.
  std::array<int, kLanes> hand_over(const std::array<int, kLanes>& demand) {
    std::array<int, kLanes> before, lanes, holders;
    std::iota(lanes.begin(), lanes.end(), 0);
    holders = lanes;
    std::stable_sort(lanes.begin(), lanes.end(),
                     [&](int a, int b) { return demand[a] > demand[b]; });
    std::stable_sort(holders.begin(), holders.end(),
                     [&](int a, int b) { return level[queue[a]] < level[queue[b]]; });
    const std::array<int, kLanes> old = queue;
    for (int i = 0; i < kLanes; ++i) {
      before[lanes[i]] = holders[i];
      queue[lanes[i]] = old[holders[i]];
    }
    return before;
  }
};

// Fills the queues of one segment, step by step.
template <class Queues>
struct QueueFiller {
  using Block = typename Queues::Block;
  using Flags = std::array<bool, kLanes>;  // of a block, by lane

  const Entries& entries;
  std::vector<std::uint32_t> words = {};
  int most = 0;  // levels that are read so far, of the queue that is consumed furthest
  Readers readers = {};
  // Units that steps so far need, and those that all queues have left. The kernel waits for a unit
  // at each step that needs one more than the steps before it, and asks for the unit that takes its
  // place in the ring after each step that leaves one.
  int needed = 0, released = 0;

  void fill_block(int first, int last, Block& block) {
    const std::array<int, kLanes> from = hand_over_block(first, last);
    Flags flags{};
    for (int step = first; step < last; ++step)
      set_flags(step - first, store_step(step, step - first, block), flags);
    for (int lane = 0; lane < kLanes; ++lane)
      block.hand_over[lane] =
          static_cast<std::uint8_t>(from[lane] | (flags[lane] ? Block::kFlag : 0));
  }

 private:
  std::array<int, kLanes> hand_over_block(int first, int last) {
    std::array<int, kLanes> demand{};
    for (int step = first; step < last; ++step)
      for (int lane = 0; lane < kLanes; ++lane)
        demand[lane] +=
            Queues::words_of(bitmap_bits::stored<Queues>(entries.present[step * kLanes + lane]));
    return readers.hand_over(demand);
  }

  // Returns the levels that the least consumed queue has left behind.
  int store_step(int step, int in_block, Block& block) {
    std::array<typename Queues::Bits, kLanes> bits;
    for (int lane = 0; lane < kLanes; ++lane) {
      bits[lane] = bitmap_bits::stored<Queues>(entries.present[step * kLanes + lane]);
      most = std::max(most, readers.level[readers.queue[lane]] + Queues::words_read(bits[lane]));
    }
    words.resize(std::size_t(most) * kLanes);
    int least = most;
    for (int lane = 0; lane < kLanes; ++lane) {
      const std::size_t at = std::size_t(step) * kLanes + lane;
      const int queue = readers.queue[lane];
      int& level = readers.level[queue];
      const int missing = most - Queues::kMaxLag - level - Queues::words_of(bits[lane]);
      if (missing > 0) bits[lane] = bitmap_bits::stored<Queues>(entries.present[at], missing);
      Queues::for_each_half(bits[lane], [&](int position, int half) {
        if (half == 0) ++level;
        words[std::size_t(level - 1) * kLanes + queue] |=
            std::uint32_t{entries.values[at * kLanePositions + position]} << 16 * half;
      });
      least = std::min(least, level);
      block.bits[in_block / Queues::kGroupSteps][lane][in_block % Queues::kGroupSteps] = bits[lane];
    }
    return least;
  }

  void set_flags(int in_block, int least, Flags& flags) {
    if ((most + Queues::kUnitLevels - 1) / Queues::kUnitLevels > needed) {
      ++needed;
      flags[in_block] = true;
    }
    if (least / Queues::kUnitLevels > released) {
      ++released;
      flags[Queues::kBlockSteps + in_block] = true;
    }
  }
};

// Writes the blocks of one segment, which exist, and returns its words.
template <class Queues>
std::vector<std::uint32_t> fill_queues(const Entries& entries, int steps,
                                       typename Queues::Block* block, std::int32_t& levels) {
  QueueFiller<Queues> filler{entries};
  for (int first = 0; first < steps; first += Queues::kBlockSteps)
    filler.fill_block(first, std::min(steps, first + Queues::kBlockSteps), *block++);
  levels = filler.most;
  return std::move(filler.words);
}

template <class Queues>
constexpr const char* kName = Queues::kPairs ? "bitmap_queues" : "bitmap_values";

}  // namespace

std::vector<Panels::Range> BitmapPanels::whole_panels(std::int64_t rows, std::int64_t cols,
                                                      ElementType type) {
  std::vector<Range> out;
  for (std::int64_t panel = 0; panel < panels(rows); ++panel)
    out.push_back(
        {static_cast<std::int32_t>(panel), 0, static_cast<std::int32_t>(panel_steps(cols, type))});
  return out;
}

std::vector<Panels::Segment> BitmapPanels::segments_of(const std::vector<Range>& ranges) {
  std::vector<Segment> out;
  std::int64_t blocks = 0;
  for (const Range& range : ranges) {
    out.push_back({blocks, 0, range.panel, range.first_step, range.steps, 0});
    blocks += blocks_of(range.steps);
  }
  return out;
}

template <BitmapKind kKind>
BitmapQueues<kKind> BitmapQueues<kKind>::build(const CsrMatrix& matrix, ElementType type,
                                               const std::vector<Range>& ranges) {
  BitmapQueues out;
  out.rows = matrix.rows;
  out.cols = matrix.cols;
  out.nnz = matrix.nnz();
  out.type = type;
  out.segments = segments_of(ranges);
  out.blocks.resize(blocks_in(out.segments));
  std::vector<std::vector<std::uint32_t>> words(ranges.size());
  const auto segments = static_cast<std::int64_t>(ranges.size());
  ExceptionTrap trap;
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t i = 0; i < segments; ++i) {
    Segment& segment = out.segments[i];
    trap.run([&] {
      words[i] = fill_queues<BitmapQueues>(gather(matrix, type, ranges[i]), segment.steps,
                                           out.blocks.data() + segment.first_block, segment.levels);
    });
  }
  trap.rethrow();
  std::int64_t levels = 0;
  for (Segment& segment : out.segments) {
    segment.first_level = levels;
    levels += segment.levels;
  }
  out.words.resize(levels * kLanes);
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t i = 0; i < segments; ++i) {
    std::copy(words[i].begin(), words[i].end(),
              out.words.begin() + out.segments[i].first_level * kLanes);
    words[i] = {};
  }
  return out;
}

template <BitmapKind kKind>
CsrMatrix BitmapQueues<kKind>::unpack() const {
  const int columns = columns_in(type), bits = 16 / columns;
  std::vector<std::vector<Nonzero>> found(segments.size());
  const auto segment_count = static_cast<std::int64_t>(segments.size());
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t i = 0; i < segment_count; ++i) {
    const Segment& segment = segments[i];
    std::array<std::int64_t, kLanes> at;  // the next word of a lane's queue
    for (int lane = 0; lane < kLanes; ++lane) at[lane] = segment.first_level * kLanes + lane;
    for (int step = 0; step < segment.steps; ++step) {
      const Block& block = blocks[segment.first_block + step / kBlockSteps];
      if (step % kBlockSteps == 0) {
        const auto old = at;
        for (int lane = 0; lane < kLanes; ++lane) at[lane] = old[block.hand_over[lane] % kLanes];
      }
      for (int lane = 0; lane < kLanes; ++lane) {
        std::uint32_t word = 0;
        for_each_half(block.bits[step % kBlockSteps / kGroupSteps][lane][step % kGroupSteps],
                      [&](int position, int half) {
                        if (half == 0) {
                          word = words[at[lane]];
                          at[lane] += kLanes;
                        }
                        const Cell cell = cell_at(lane, position);
                        const int col = (segment.first_step + step) * kStepCols + cell.col;
                        for (int c = 0; c < columns; ++c) {
                          const float value =
                              decode(type, word >> (16 * half + bits * c) & ((1U << bits) - 1));
                          if (value != 0)
                            found[i].push_back(
                                {segment.panel * kPanelRows + cell.row, col * columns + c, value});
                        }
                      });
      }
    }
  }
  std::vector<Nonzero> all;
  for (const auto& entries : found) all.insert(all.end(), entries.begin(), entries.end());
  return csr_of(rows, cols, std::move(all));
}

template <BitmapKind kKind>
FormatStats BitmapQueues<kKind>::stats() const {
  return stats_of(rows, nnz,
                  {.segments = std::ssize(segments),
                   .blocks = std::ssize(blocks),
                   .words = std::ssize(words),
                   .type = type});
}

template <BitmapKind kKind>
FormatStats BitmapQueues<kKind>::stats_of(std::int64_t rows, std::int64_t nnz,
                                          const Counts& counts) {
  FormatStats out;
  out.name = kName<BitmapQueues>;
  out.stored = counts.words * 2 * columns_in(counts.type);
  out.index_bytes =
      counts.blocks * std::int64_t{sizeof(Block)} + counts.segments * std::int64_t{sizeof(Segment)};
  out.bytes = out.index_bytes + counts.words * std::int64_t{sizeof(std::uint32_t)};
  out.tiles = counts.blocks * kBlockSteps;
  out.windows = panels(rows);
  if (out.tiles == 0) return out;
  const auto entries = static_cast<double>(nnz), tiles = static_cast<double>(out.tiles);
  out.fill = entries / (tiles * kStepPositions * columns_in(counts.type));
  out.nnz_per_tile = entries / tiles;
  out.nnz_per_window = entries / static_cast<double>(out.windows);
  out.window_imbalance = 1;
  out.extra["stored_per_nnz"] = static_cast<double>(out.stored) / std::max(entries, 1.0);
  return out;
}

template struct BitmapQueues<BitmapKind::pairs>;
template struct BitmapQueues<BitmapKind::values>;

namespace {

template <class Queues>
class BitmapQueuesFormat final : public Format {
 public:
  std::string name() const override { return kName<Queues>; }
  std::string summary() const override {
    return Queues::kPairs
               ? "a bit per pair of columns, pairs in 32 queues per panel of 16 rows (bitmap_dense)"
               : "a bit per position, values in 32 queues per panel of 16 rows (bitmap_dense)";
  }
  FormatStats analyze(const CsrMatrix& matrix, const Options& /*options*/) const override {
    const auto ranges = Panels::whole_panels(matrix.rows, matrix.cols);
    const std::int64_t steps = Panels::panel_steps(matrix.cols);
    const auto panels = static_cast<std::int64_t>(ranges.size());
    if (panels * steps <= kMostSteps)
      return Queues::build(matrix, ElementType::f16, ranges).stats();
    // Hypersparse: counted with one nonzero a word and without zeros that keep queues level.
    return Queues::stats_of(
        matrix.rows, matrix.nnz(),
        {.segments = panels, .blocks = panels * Panels::blocks_of(steps), .words = matrix.nnz()});
  }

 private:
  static constexpr std::int64_t kMostSteps = std::int64_t{1} << 18;  // kStepPositions each
};

using PairQueuesFormat = BitmapQueuesFormat<PairQueues>;
using ValueQueuesFormat = BitmapQueuesFormat<ValueQueues>;
SPMMBENCH_REGISTER_FORMAT(PairQueuesFormat);
SPMMBENCH_REGISTER_FORMAT(ValueQueuesFormat);

}  // namespace
}  // namespace spmmbench::bitmap_dense
