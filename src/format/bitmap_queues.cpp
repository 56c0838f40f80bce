#include "format/bitmap_queues.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "format/nonzeros.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

using Queues = BitmapQueues;
constexpr int kLanes = Queues::kLanes;
constexpr int kStepPairs = Queues::kStepPairs;

// Where the pair with element (row, col) of a step lies: its lane, and the lane's bit.
struct Place {
  int lane, bit;
};
Place place_of(int row, int col) {
  const int fragment = col / 16, reg = row / 8 + 2 * (col % 16 / 8);
  return {row % 8 * 4 + col % 8 / 2, 4 * fragment + reg};
}
struct Position {
  int row, col;  // the even one
};
Position position_of(int lane, int bit) {
  const int fragment = bit / 4, reg = bit % 4;
  return {lane / 4 + 8 * (reg % 2), fragment * 16 + lane % 4 * 2 + 8 * (reg / 2)};
}

// The pairs of one segment, by lane.
struct Entries {
  std::vector<std::uint16_t> bits;   // [step][lane]
  std::vector<std::uint32_t> pairs;  // [step][lane][bit]
};

Entries gather(const CsrMatrix& matrix, const Queues& format, const Queues::Range& range) {
  Entries out;
  out.bits.resize(std::size_t(range.steps) * kLanes);
  out.pairs.resize(out.bits.size() * kStepPairs);
  constexpr int kStepCols = Queues::kStepCols;
  const std::int64_t first_row = std::int64_t{range.panel} * Queues::kPanelRows;
  const std::int64_t last_row = std::min(matrix.rows, first_row + Queues::kPanelRows);
  const std::int64_t first_col = std::int64_t{range.first_step} * kStepCols;
  const std::int64_t last_col = first_col + std::int64_t{range.steps} * kStepCols;
  for (std::int64_t row = first_row; row < last_row; ++row) {
    const auto begin = matrix.col_idx.begin() + matrix.row_ptr[row];
    const auto end = matrix.col_idx.begin() + matrix.row_ptr[row + 1];
    for (auto at = std::lower_bound(begin, end, first_col); at != end && *at < last_col; ++at) {
      const auto col = static_cast<int>(*at - first_col);
      const Place place = place_of(static_cast<int>(row - first_row), col % kStepCols);
      const std::size_t word = std::size_t(col / kStepCols) * kLanes + place.lane;
      const float value = matrix.values[at - matrix.col_idx.begin()];
      out.bits[word] = static_cast<std::uint16_t>(out.bits[word] | 1U << place.bit);
      out.pairs[word * kStepPairs + place.bit] |=
          static_cast<std::uint32_t>(encode(format.type, value)) << (col % 2 * 16);
    }
  }
  return out;
}

// Sets `missing` more of the bits, where they are zero.
std::uint16_t add_zeros(unsigned bits, int missing) {
  for (int bit = 0; missing > 0; ++bit)
    if ((bits >> bit & 1U) == 0) {
      bits |= 1U << bit;
      --missing;
    }
  return static_cast<std::uint16_t>(bits);
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

// Writes the blocks of one segment, which exist, and returns its pairs.
std::vector<std::uint32_t> fill_queues(Entries entries, int steps, Queues::Block* block,
                                       std::int32_t& levels) {
  std::vector<std::uint32_t> pairs;
  Readers readers;
  int most = 0, needed = 0, released = 0;
  for (int first = 0; first < steps; first += Queues::kBlockSteps, ++block) {
    const int last = std::min(steps, first + Queues::kBlockSteps);
    std::array<int, kLanes> demand{};
    for (int step = first; step < last; ++step)
      for (int lane = 0; lane < kLanes; ++lane)
        demand[lane] += std::popcount(entries.bits[step * kLanes + lane]);
    const std::array<int, kLanes> from = readers.hand_over(demand);
    std::array<bool, kLanes> flag{};
    for (int step = first; step < last; ++step) {
      std::uint16_t* const words = entries.bits.data() + std::size_t(step) * kLanes;
      for (int lane = 0; lane < kLanes; ++lane)
        most = std::max(most, readers.level[readers.queue[lane]] + std::popcount(words[lane]));
      pairs.resize(std::size_t(most) * kLanes);
      int least = most;
      for (int lane = 0; lane < kLanes; ++lane) {
        int& level = readers.level[readers.queue[lane]];
        const int missing = most - Queues::kMaxLag - level - std::popcount(words[lane]);
        if (missing > 0) words[lane] = add_zeros(words[lane], missing);
        const std::uint32_t* const from_pairs =
            entries.pairs.data() + (std::size_t(step) * kLanes + lane) * kStepPairs;
        for (unsigned rest = words[lane]; rest != 0; rest &= rest - 1)
          pairs[std::size_t(level++) * kLanes + readers.queue[lane]] =
              from_pairs[std::countr_zero(rest)];
        least = std::min(least, level);
      }
      if ((most + Queues::kUnitLevels - 1) / Queues::kUnitLevels > needed) {
        ++needed;
        flag[step - first] = true;
      }
      if (least / Queues::kUnitLevels > released) {
        ++released;
        flag[Queues::kBlockSteps + step - first] = true;
      }
      const int in_block = step - first;
      for (int lane = 0; lane < kLanes; ++lane)
        block->bits[in_block / Queues::kGroupSteps][lane][in_block % Queues::kGroupSteps] =
            words[lane];
    }
    for (int lane = 0; lane < kLanes; ++lane)
      block->hand_over[lane] =
          static_cast<std::uint8_t>(from[lane] | (flag[lane] ? Queues::Block::kFlag : 0));
  }
  levels = most;
  return pairs;
}

std::int64_t blocks_of(std::int32_t steps) {
  return (steps + Queues::kBlockSteps - 1) / Queues::kBlockSteps;
}

constexpr const char* kName = "bitmap_queues";

struct Sizes {
  std::int64_t rows, cols, nnz;
};

FormatStats count_stats(const Sizes& matrix, std::int64_t segments, std::int64_t blocks,
                        std::int64_t stored) {
  FormatStats out;
  out.name = kName;
  out.stored = stored;
  out.index_bytes = blocks * std::int64_t{sizeof(Queues::Block)} +
                    segments * std::int64_t{sizeof(Queues::Segment)};
  out.bytes = out.index_bytes + stored * std::int64_t{sizeof(std::uint16_t)};
  out.tiles = blocks * Queues::kBlockSteps;
  out.windows = Queues::panels(matrix.rows);
  if (out.tiles == 0) return out;
  const auto entries = static_cast<double>(matrix.nnz), tiles = static_cast<double>(out.tiles);
  out.fill = entries / (tiles * Queues::kStepPositions);
  out.nnz_per_tile = entries / tiles;
  out.nnz_per_window = entries / static_cast<double>(out.windows);
  out.window_imbalance = 1;
  out.extra["stored_per_nnz"] = static_cast<double>(stored) / std::max(entries, 1.0);
  return out;
}

}  // namespace

std::vector<BitmapQueues::Range> BitmapQueues::whole_panels(std::int64_t rows, std::int64_t cols) {
  std::vector<Range> out;
  for (std::int64_t panel = 0; panel < panels(rows); ++panel)
    out.push_back(
        {static_cast<std::int32_t>(panel), 0, static_cast<std::int32_t>(panel_steps(cols))});
  return out;
}

BitmapQueues BitmapQueues::build(const CsrMatrix& matrix, ElementType type,
                                 const std::vector<Range>& ranges) {
  BitmapQueues out;
  out.rows = matrix.rows;
  out.cols = matrix.cols;
  out.nnz = matrix.nnz();
  out.type = type;
  std::int64_t blocks = 0;
  for (const Range& range : ranges) {
    out.segments.push_back({blocks, 0, range.panel, range.first_step, range.steps, 0});
    blocks += blocks_of(range.steps);
  }
  out.blocks.resize(blocks);
  std::vector<std::vector<std::uint32_t>> pairs(ranges.size());
  const auto segments = static_cast<std::int64_t>(ranges.size());
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t i = 0; i < segments; ++i) {
    Segment& segment = out.segments[i];
    pairs[i] = fill_queues(gather(matrix, out, ranges[i]), segment.steps,
                           out.blocks.data() + segment.first_block, segment.levels);
  }
  std::int64_t levels = 0;
  for (Segment& segment : out.segments) {
    segment.first_level = levels;
    levels += segment.levels;
  }
  out.pairs.resize(levels * kLanes);
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t i = 0; i < segments; ++i) {
    std::copy(pairs[i].begin(), pairs[i].end(),
              out.pairs.begin() + out.segments[i].first_level * kLanes);
    pairs[i] = {};
  }
  return out;
}

CsrMatrix BitmapQueues::unpack() const {
  std::vector<std::vector<Nonzero>> found(segments.size());
  const auto segment_count = static_cast<std::int64_t>(segments.size());
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t i = 0; i < segment_count; ++i) {
    const Segment& segment = segments[i];
    std::array<std::int64_t, kLanes> at;  // the next pair of a lane's queue
    for (int lane = 0; lane < kLanes; ++lane) at[lane] = segment.first_level * kLanes + lane;
    for (int step = 0; step < segment.steps; ++step) {
      const Block& block = blocks[segment.first_block + step / kBlockSteps];
      if (step % kBlockSteps == 0) {
        const auto old = at;
        for (int lane = 0; lane < kLanes; ++lane) at[lane] = old[block.hand_over[lane] % kLanes];
      }
      for (int lane = 0; lane < kLanes; ++lane) {
        unsigned rest = block.bits[step % kBlockSteps / kGroupSteps][lane][step % kGroupSteps];
        for (; rest != 0; rest &= rest - 1) {
          const std::uint32_t pair = pairs[at[lane]];
          at[lane] += kLanes;
          const Position p = position_of(lane, std::countr_zero(rest));
          for (int odd = 0; odd < 2; ++odd) {
            const float value = decode(type, static_cast<std::uint16_t>(pair >> (16 * odd)));
            if (value != 0)
              found[i].push_back({segment.panel * kPanelRows + p.row,
                                  (segment.first_step + step) * kStepCols + p.col + odd, value});
          }
        }
      }
    }
  }
  std::vector<Nonzero> all;
  for (const auto& entries : found) all.insert(all.end(), entries.begin(), entries.end());
  return csr_of(rows, cols, std::move(all));
}

FormatStats BitmapQueues::stats() const {
  return count_stats({rows, cols, nnz}, static_cast<std::int64_t>(segments.size()),
                     static_cast<std::int64_t>(blocks.size()),
                     static_cast<std::int64_t>(2 * pairs.size()));
}

namespace {

class BitmapQueuesFormat final : public Format {
 public:
  std::string name() const override { return kName; }
  std::string summary() const override {
    return "a bit per pair of columns, pairs in 32 queues per panel of 16 rows (bitmap_dense)";
  }
  FormatStats analyze(const CsrMatrix& matrix, const Options& /*options*/) const override {
    const auto ranges = Queues::whole_panels(matrix.rows, matrix.cols);
    const std::int64_t steps = Queues::panel_steps(matrix.cols);
    const auto panels = static_cast<std::int64_t>(ranges.size());
    if (panels * steps <= kMostSteps)
      return Queues::build(matrix, ElementType::f16, ranges).stats();
    // Hypersparse: counted with one nonzero a pair and without zeros that keep queues level.
    const std::int64_t blocks = panels * ((steps + Queues::kBlockSteps - 1) / Queues::kBlockSteps);
    return count_stats({matrix.rows, matrix.cols, matrix.nnz()}, panels, blocks, 2 * matrix.nnz());
  }

 private:
  static constexpr std::int64_t kMostSteps = std::int64_t{1} << 18;  // kStepPositions each
};

SPMMBENCH_REGISTER_FORMAT(BitmapQueuesFormat);

}  // namespace
}  // namespace spmmbench
