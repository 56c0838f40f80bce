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
constexpr int kHalves = 2;     // low and high positions, queues and values
constexpr int kHalfBits = 16;  // positions of one lane and half in a step
constexpr int kStepBits = kHalves * kHalfBits;
constexpr unsigned kHalfMask = 0xFFFFU;

// Where element (row, col) of a step lies: its lane, and the bit of the lane's word.
struct Place {
  int lane, bit;
};
Place place_of(int row, int col) {
  const int fragment = col / 16, reg = row / 8 + 2 * (col % 16 / 8);
  return {row % 8 * 4 + col % 8 / 2, 4 * fragment + reg + kHalfBits * (col % 2)};
}
struct Position {
  int row, col;
};
Position position_of(int lane, int bit) {
  const int half = bit / kHalfBits, fragment = bit % kHalfBits / 4, reg = bit % 4;
  return {lane / 4 + 8 * (reg % 2), fragment * 16 + lane % 4 * 2 + 8 * (reg / 2) + half};
}

// The entries of one segment, by lane.
struct Entries {
  std::vector<std::uint32_t> bits;    // [step][lane]
  std::vector<std::uint16_t> values;  // [step][lane][bit]
};

Entries gather(const CsrMatrix& matrix, const Queues& format, const Queues::Range& range) {
  Entries out;
  out.bits.resize(std::size_t(range.steps) * kLanes);
  out.values.resize(out.bits.size() * kStepBits);
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
      out.bits[word] |= 1U << place.bit;
      out.values[word * kStepBits + place.bit] =
          static_cast<std::uint16_t>(encode(format.type, value));
    }
  }
  return out;
}

int count(std::uint32_t word, int half) {
  return std::popcount((word >> (half * kHalfBits)) & kHalfMask);
}

// Sets `missing` more of the half's bits, where they are zero.
std::uint32_t add_zeros(std::uint32_t word, int half, int missing) {
  for (int bit = half * kHalfBits; missing > 0; ++bit)
    if ((word >> bit & 1U) == 0) {
      word |= 1U << bit;
      --missing;
    }
  return word;
}

// Which lane reads which queue of one half, and how far each queue is consumed.
struct Half {
  std::array<int, kLanes> queue;    // of a lane
  std::array<int, kLanes> level{};  // of a queue

  Half() { std::iota(queue.begin(), queue.end(), 0); }
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

// Writes one segment to `bits` and `hand_over`, which are sized, and returns its values.
std::vector<std::uint16_t> fill_queues(Entries entries, int steps, std::uint32_t* bits,
                                       std::uint16_t* hand_over, std::int32_t& levels) {
  std::vector<std::uint16_t> values;
  std::array<Half, kHalves> halves;
  int most = 0, needed = 0, released = 0;
  for (int first = 0; first < steps; first += Queues::kBlockSteps) {
    const int last = std::min(steps, first + Queues::kBlockSteps);
    std::array<std::array<int, kLanes>, kHalves> from;
    for (int h = 0; h < kHalves; ++h) {
      std::array<int, kLanes> demand{};
      for (int step = first; step < last; ++step)
        for (int lane = 0; lane < kLanes; ++lane)
          demand[lane] += count(entries.bits[step * kLanes + lane], h);
      from[h] = halves[h].hand_over(demand);
    }
    std::array<bool, kLanes> flag{};
    for (int step = first; step < last; ++step) {
      std::uint32_t* const words = entries.bits.data() + std::size_t(step) * kLanes;
      for (int h = 0; h < kHalves; ++h)
        for (int lane = 0; lane < kLanes; ++lane)
          most = std::max(most, halves[h].level[halves[h].queue[lane]] + count(words[lane], h));
      int least = most;
      for (int h = 0; h < kHalves; ++h)
        for (int lane = 0; lane < kLanes; ++lane) {
          int& level = halves[h].level[halves[h].queue[lane]];
          const int missing = most - Queues::kMaxLag - level - count(words[lane], h);
          if (missing > 0) words[lane] = add_zeros(words[lane], h, missing);
          values.resize(std::max(values.size(), std::size_t(most) * kLanes * kHalves));
          const std::uint16_t* const from_values =
              entries.values.data() + (std::size_t(step) * kLanes + lane) * kStepBits;
          for (std::uint32_t rest = words[lane] >> (h * kHalfBits) & kHalfMask; rest != 0;
               rest &= rest - 1)
            values[(std::size_t(level++) * kLanes + halves[h].queue[lane]) * kHalves + h] =
                from_values[h * kHalfBits + std::countr_zero(rest)];
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
      for (int lane = 0; lane < kLanes; ++lane)
        bits[(step / Queues::kGroupSteps * kLanes + lane) * Queues::kGroupSteps +
             step % Queues::kGroupSteps] = words[lane];
    }
    for (int lane = 0; lane < kLanes; ++lane)
      hand_over[first / Queues::kBlockSteps * kLanes + lane] =
          Queues::hand_over_of(from[0][lane], from[1][lane], flag[lane]);
  }
  levels = most;
  return values;
}

std::int64_t blocks_of(std::int32_t steps) {
  return (steps + Queues::kBlockSteps - 1) / Queues::kBlockSteps;
}

constexpr const char* kName = "bitmap_queues";
constexpr std::int64_t kBlockWords = Queues::kBlockSteps * kLanes;
constexpr std::int64_t kLevelValues = kLanes * kHalves;

struct Sizes {
  std::int64_t rows, cols, nnz;
};

FormatStats count_stats(const Sizes& matrix, std::int64_t segments, std::int64_t blocks,
                        std::int64_t stored) {
  FormatStats out;
  out.name = kName;
  out.stored = stored;
  out.index_bytes = blocks * (kBlockWords * std::int64_t{sizeof(std::uint32_t)} +
                              kLanes * std::int64_t{sizeof(std::uint16_t)}) +
                    segments * std::int64_t{sizeof(Queues::Segment)};
  out.bytes = out.index_bytes + stored * std::int64_t{sizeof(std::uint16_t)};
  out.tiles = blocks * Queues::kBlockSteps;
  out.windows = Queues::panels(matrix.rows);
  if (out.tiles == 0) return out;
  const auto entries = static_cast<double>(matrix.nnz), tiles = static_cast<double>(out.tiles);
  out.fill = entries / (tiles * kLanes * kStepBits);
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
  out.bits.resize(blocks * kBlockWords);
  out.hand_over.resize(blocks * kLanes);
  std::vector<std::vector<std::uint16_t>> values(ranges.size());
  const auto segments = static_cast<std::int64_t>(ranges.size());
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t i = 0; i < segments; ++i) {
    Segment& segment = out.segments[i];
    values[i] = fill_queues(gather(matrix, out, ranges[i]), segment.steps,
                            out.bits.data() + segment.first_block * kBlockWords,
                            out.hand_over.data() + segment.first_block * kLanes, segment.levels);
  }
  std::int64_t levels = 0;
  for (Segment& segment : out.segments) {
    segment.first_level = levels;
    levels += segment.levels;
  }
  out.values.resize(levels * kLevelValues);
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t i = 0; i < segments; ++i) {
    std::copy(values[i].begin(), values[i].end(),
              out.values.begin() + out.segments[i].first_level * kLevelValues);
    values[i] = {};
  }
  return out;
}

CsrMatrix BitmapQueues::unpack() const {
  std::vector<std::vector<Nonzero>> found(segments.size());
  const auto segment_count = static_cast<std::int64_t>(segments.size());
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t i = 0; i < segment_count; ++i) {
    const Segment& segment = segments[i];
    std::array<std::array<std::int64_t, kLanes>, kHalves> at;  // the next value of a lane's queue
    for (int h = 0; h < kHalves; ++h)
      for (int lane = 0; lane < kLanes; ++lane)
        at[h][lane] = (segment.first_level * kLanes + lane) * kHalves + h;
    for (int step = 0; step < segment.steps; ++step) {
      const std::int64_t block = segment.first_block + step / kBlockSteps;
      if (step % kBlockSteps == 0) {
        const auto old = at;
        for (int lane = 0; lane < kLanes; ++lane) {
          const std::uint16_t word = hand_over[block * kLanes + lane];
          at[0][lane] = old[0][word % kLanes];
          at[1][lane] = old[1][word / kLanes % kLanes];
        }
      }
      for (int lane = 0; lane < kLanes; ++lane) {
        std::uint32_t rest = bits[block * kBlockWords +
                                  (step % kBlockSteps / kGroupSteps * kLanes + lane) * kGroupSteps +
                                  step % kGroupSteps];
        for (; rest != 0; rest &= rest - 1) {
          const int bit = std::countr_zero(rest);
          std::int64_t& next = at[bit / kHalfBits][lane];
          const std::uint16_t value = values[next];
          next += kLevelValues;
          const float real = decode(type, value);
          if (real == 0) continue;
          const Position p = position_of(lane, bit);
          found[i].push_back({segment.panel * kPanelRows + p.row,
                              (segment.first_step + step) * kStepCols + p.col, real});
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
                     static_cast<std::int64_t>(hand_over.size()) / kLanes,
                     static_cast<std::int64_t>(values.size()));
}

namespace {

class BitmapQueuesFormat final : public Format {
 public:
  std::string name() const override { return kName; }
  std::string summary() const override {
    return "a bit per position, 16-bit nonzeros in 64 queues per panel of 16 rows (bitmap_dense)";
  }
  FormatStats analyze(const CsrMatrix& matrix, const Options& /*options*/) const override {
    const auto ranges = Queues::whole_panels(matrix.rows, matrix.cols);
    const std::int64_t steps = Queues::panel_steps(matrix.cols);
    const auto panels = static_cast<std::int64_t>(ranges.size());
    if (panels * steps <= kMostSteps)
      return Queues::build(matrix, ElementType::f16, ranges).stats();
    // Hypersparse: counted without the zeros that keep queues level.
    const std::int64_t blocks = panels * ((steps + Queues::kBlockSteps - 1) / Queues::kBlockSteps);
    return count_stats({matrix.rows, matrix.cols, matrix.nnz()}, panels, blocks, matrix.nnz());
  }

 private:
  static constexpr std::int64_t kMostSteps = std::int64_t{1} << 18;  // 1024 positions each
};

SPMMBENCH_REGISTER_FORMAT(BitmapQueuesFormat);

}  // namespace
}  // namespace spmmbench
