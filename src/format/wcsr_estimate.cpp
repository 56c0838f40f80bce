#include "format/wcsr_estimate.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "format/column_hash.hpp"

namespace spmmbench {
namespace {

constexpr std::int64_t kGroupRows = 32;
constexpr std::int64_t kTileColumns = WcsrShape{}.tile_columns;
constexpr std::int64_t kSamples = kSampledRows, kLeastSamples = 16;
// Fewer samples suffice if every group has more nonzeros than there are columns, or than
// kManyEntries, and the largest group has at most this many times the nonzeros of the smallest.
constexpr std::int64_t kLeastFull = 8, kLeastAlike = 4;
constexpr double kFullSpread = 2, kAlikeSpread = 1.25;
constexpr std::int64_t kManyEntries = 1 << 10;  // of a group
constexpr std::int64_t kMostEntries = 1 << 12;  // of all samples; beyond it there are fewer samples
constexpr std::int64_t kMostRead = 1 << 10;     // of one group, about
constexpr std::int64_t kMostCounted = 256;      // of these
constexpr std::int64_t kMostSized = 4096;       // groups of an ordered matrix
constexpr std::size_t kHeights = kWcsrHeights.size();
static_assert(kWcsrHeights[0] == 8 && kWcsrHeights[1] == 16 && kWcsrHeights[2] == kGroupRows);

// For each column of a group which of the group's four lowest windows have had it, one bit each.
// Open addressing; columns beyond what was expected are not kept once three eighths are taken,
// which counts them too often.
class WindowsOfColumns {
 public:
  void reset(std::int64_t columns) {
    const std::size_t slots = std::bit_ceil(static_cast<std::size_t>(4 * columns + 64));
    column_.assign(slots, -1);
    windows_.resize(slots);
    mask_ = slots - 1;
    free_ = slots / 8 * 3;
  }
  // Returns the windows that had this column, and adds those in `windows`.
  unsigned add(std::int32_t column, unsigned windows) {
    std::size_t at = column_hash(column) & mask_;
    while (column_[at] != column && column_[at] >= 0) at = (at + 1) & mask_;
    // Without a branch, since whether a column is new is random.
    const bool is_new = column_[at] < 0;
    if (free_ == 0 && is_new) return 0;
    free_ -= is_new ? 1 : 0;
    const unsigned before = is_new ? 0U : windows_[at];
    column_[at] = column;
    windows_[at] = static_cast<std::uint8_t>(before | windows);
    return before;
  }

 private:
  std::vector<std::int32_t> column_;
  std::vector<std::uint8_t> windows_;
  std::size_t mask_ = 0;
  std::size_t free_ = 0;
};

constexpr WcsrEstimate kNothingShared = {{1, 1, 1}, {1, 1, 1}};

struct Group {
  std::int64_t first, last, nnz;  // places [first, last)
};

// The columns [first, last) of a group that are looked at, one of `count` ranges, and which.
struct Range {
  std::int64_t first, last, count, index;
};

// The ranges of a group with many entries begin at evenly spaced entries of one of its rows, which
// is drawn in proportion to its entries. They have about kMostRead entries each if the other rows
// are like this one.
Range range_of(const CsrMatrix& matrix, const Permutation& row_order, const Group& group,
               std::int64_t sample) {
  constexpr std::int64_t kLeastOfRow = 16;  // entries in a range
  const Range all = {0, matrix.cols, 1, 0};
  if (group.nnz < 2 * kMostRead) return all;
  std::int64_t entry =
      std::int64_t{column_hash(static_cast<std::int32_t>(sample + 1))} * group.nnz >> 32;
  std::int64_t row = 0;
  for (std::int64_t place = group.first;; ++place) {
    row = row_order.empty() ? place : row_order[place];
    if (entry < matrix.row_length(row)) break;
    entry -= matrix.row_length(row);
  }
  const std::int64_t length = matrix.row_length(row);
  const std::int64_t count = std::min(group.nnz / kMostRead, length / kLeastOfRow);
  if (count <= 1) return all;
  const std::int64_t index = entry * count / length;
  const auto begin_of = [&](std::int64_t i) {
    return matrix.col_idx[matrix.row_ptr[row] + length * i / count];
  };
  return {index > 0 ? begin_of(index) : 0, index + 1 < count ? begin_of(index + 1) : matrix.cols,
          count, index};
}

// For each row of the group its first entry whose column is at least `column`. All rows look at
// once, so that they wait for memory at the same time.
std::array<std::int64_t, kGroupRows> entries_at(const CsrMatrix& matrix,
                                                const Permutation& row_order, const Group& group,
                                                std::int64_t column) {
  std::array<std::int64_t, kGroupRows> first{}, last{};
  std::int64_t longest = 1;
  const std::int64_t rows = group.last - group.first;
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t row = row_order.empty() ? group.first + i : row_order[group.first + i];
    first[i] = matrix.row_ptr[row];
    last[i] = matrix.row_ptr[row + 1];
    longest = std::max(longest, last[i] - first[i]);
  }
  if (column == 0) return first;
  for (auto way = static_cast<std::int64_t>(std::bit_floor(static_cast<std::size_t>(longest)));
       way > 0; way /= 2)
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t end = std::min(first[i] + way, last[i]);
      const bool before = end > first[i] && matrix.col_idx[end - 1] < column;
      first[i] = before ? end : first[i];
    }
  return first;
}

// A group that is measured, and how many times it was drawn.
struct Sample {
  Group group;
  Range range;
  double times;
};

// Memory that all groups use in turn.
struct Scratch {
  WindowsOfColumns windows;
  // The columns of one window that are counted: at most all of a group. The array is not
  // initialized, since few columns are counted.
  std::unique_ptr<std::int32_t[]> columns;
};

// The estimate for one group, as shares of its nonzeros, and how much it counts. The nonzeros of
// its range over those of a mean range are part of the weight, since ranges are drawn evenly.
struct Measured {
  WcsrEstimate shares;
  double weight;
};

// Window w of 8 rows lies in window w / 2 of 16 rows. If a group has many entries, one column in
// `step` is counted, those with the lowest hashes, and if it has still more, only those of a range.
Measured measure(const CsrMatrix& matrix, const Permutation& row_order, const Sample& sample,
                 Scratch& scratch) {
  const auto& [group, range, times] = sample;
  const std::int64_t expected = group.nnz / range.count;
  const std::int64_t step = (expected + kMostCounted - 1) / kMostCounted;
  const std::uint32_t highest = std::numeric_limits<std::uint32_t>::max() / step;
  std::array<std::array<std::int64_t, 4>, kHeights> distinct{};  // by height and window
  std::int64_t nnz = 0;
  scratch.windows.reset(expected / step);
  const bool is_whole = row_order.empty() && range.count == 1;  // its entries follow one another
  std::array<std::int64_t, kGroupRows> from;
  if (!is_whole) from = entries_at(matrix, row_order, group, range.first);
  std::int32_t* const counted = scratch.columns.get();
  for (int window = 0; group.first + window * kWcsrHeights[0] < group.last; ++window) {
    const std::int64_t first = group.first + window * kWcsrHeights[0];
    const std::int64_t last = std::min(first + kWcsrHeights[0], group.last);
    std::size_t kept = 0;  // written without a branch, which would be taken at random
    const auto visit = [&](std::int32_t column) {
      counted[kept] = column;
      kept += column_hash(column) <= highest ? 1 : 0;
    };
    if (is_whole) {
      for (std::int64_t e = matrix.row_ptr[first]; e < matrix.row_ptr[last]; ++e)
        visit(matrix.col_idx[e]);
      nnz += matrix.row_ptr[last] - matrix.row_ptr[first];
    } else {
      for (std::int64_t place = first; place < last; ++place) {
        const std::int64_t begin = from[place - group.first];
        const std::int64_t end = matrix.row_ptr[(row_order.empty() ? place : row_order[place]) + 1];
        std::int64_t e = begin;
        for (; e < end && matrix.col_idx[e] < range.last; ++e) visit(matrix.col_idx[e]);
        nnz += e - begin;
      }
    }
    const unsigned of_8 = 1U << window, of_16 = 3U << (window & 2);
    for (std::size_t i = 0; i < kept; ++i) {
      const unsigned before = scratch.windows.add(counted[i], of_8);
      distinct[0][window] += (before & of_8) == 0;
      distinct[1][window / 2] += (before & of_16) == 0;
      distinct[2][0] += before == 0;
    }
  }
  Measured out = {{},
                  times * static_cast<double>(nnz * range.count) / static_cast<double>(group.nnz)};
  for (std::size_t h = 0; h < kHeights; ++h)
    for (const std::int64_t columns_of_sample : distinct[h]) {
      const double columns = static_cast<double>(columns_of_sample * step) /
                             static_cast<double>(nnz) * static_cast<double>(group.nnz);
      const double filled = std::ceil(columns / kTileColumns) * kTileColumns;
      out.shares.gathered_share[h] += columns / static_cast<double>(group.nnz);
      out.shares.stored_share[h] += filled / static_cast<double>(group.nnz);
    }
  return out;
}

Group group_at(const CsrMatrix& matrix, std::int64_t place) {
  const std::int64_t first = place / kGroupRows * kGroupRows;
  return {first, std::min(first + kGroupRows, matrix.rows), 0};
}

// Draws groups in proportion to their nonzeros. A group with many of them may be drawn, and then
// counts, more than once.
std::vector<Group> draw_groups(const CsrMatrix& matrix, const std::vector<std::int64_t>& rows) {
  std::vector<Group> drawn;
  drawn.reserve(rows.size());
  for (const std::int64_t row : rows) {
    Group group = group_at(matrix, row);
    group.nnz = matrix.row_ptr[group.last] - matrix.row_ptr[group.first];
    drawn.push_back(group);
  }
  return drawn;
}

// At most kMostSized groups take part, since a matrix in another order has no row pointers to read
// their sizes from.
std::vector<Group> draw_groups(const CsrMatrix& matrix, const Permutation& row_order) {
  const std::int64_t groups = (matrix.rows + kGroupRows - 1) / kGroupRows;
  const std::int64_t sized = std::min(groups, kMostSized);
  std::vector<Group> all(sized);
  std::int64_t nnz = 0;
  for (std::int64_t i = 0; i < sized; ++i) {
    all[i] = group_at(matrix, groups * i / sized * kGroupRows);
    for (std::int64_t place = all[i].first; place < all[i].last; ++place)
      all[i].nnz += matrix.row_length(row_order[place]);
    nnz += all[i].nnz;
  }
  std::vector<Group> drawn;
  drawn.reserve(kSamples);
  std::int64_t end = 0, s = 0;
  for (const Group& group : all) {
    end += group.nnz;
    for (; nnz * (2 * s + 1) < end * 2 * kSamples; ++s) drawn.push_back(group);
  }
  return drawn;
}

// Begins to read the rows of a group that is measured later.
void prefetch(const CsrMatrix& matrix, const Permutation& row_order, const Sample& sample) {
  constexpr std::int64_t kLineEntries = 16, kMostLines = 4;
  const auto& [group, range, _] = sample;
  for (std::int64_t place = group.first; place < group.last; ++place) {
    const std::int64_t row = row_order.empty() ? place : row_order[place];
    const std::int64_t length = matrix.row_length(row);
    const std::int64_t begin = matrix.row_ptr[row] + length * range.index / range.count;
    const std::int64_t lines = std::min(kMostLines, length / range.count / kLineEntries + 1);
    for (std::int64_t line = 0; line < lines; ++line)
      __builtin_prefetch(matrix.col_idx.data() + begin + line * kLineEntries);
  }
}

// One of this many drawn groups is measured.
std::size_t every_measured(const CsrMatrix& matrix, const std::vector<Group>& drawn) {
  std::int64_t entries = 0, most = 0, fewest = std::numeric_limits<std::int64_t>::max();
  for (const Group& group : drawn) {
    entries += group.nnz;
    const std::int64_t if_whole = group.nnz * kGroupRows / (group.last - group.first);
    fewest = std::min(fewest, if_whole);
    most = std::max(most, if_whole);
  }
  const bool full = fewest >= matrix.cols, many = fewest >= kManyEntries;
  const double spread =
      static_cast<double>(most) / static_cast<double>(std::max<std::int64_t>(fewest, 1));
  const std::int64_t least = full && spread <= kAlikeSpread   ? kLeastAlike
                             : full && spread <= kFullSpread  ? kLeastFull
                             : many && spread <= kAlikeSpread ? kLeastFull
                                                              : kLeastSamples;
  std::int64_t every = 1;
  while (kSamples / every > least && entries / every > kMostEntries) every *= 2;
  return every;
}

std::vector<Sample> samples_of(const CsrMatrix& matrix, const Permutation& row_order,
                               const std::vector<Group>& drawn) {
  std::vector<Sample> samples;
  samples.reserve(drawn.size());
  const std::size_t every = every_measured(matrix, drawn);
  for (std::size_t s = every / 2; s < drawn.size(); s += every)
    if (samples.empty() || samples.back().group.first != drawn[s].first)
      samples.push_back({drawn[s], range_of(matrix, row_order, drawn[s], std::ssize(samples)), 1});
    else samples.back().times += 1;
  return samples;
}

WcsrEstimate estimate(const CsrMatrix& matrix, const Permutation& row_order,
                      const std::vector<Group>& drawn) {
  const std::vector<Sample> samples = samples_of(matrix, row_order, drawn);
  if (samples.empty()) return kNothingShared;
  std::int64_t largest = 0;
  for (const Sample& sample : samples) largest = std::max(largest, sample.group.nnz);
  Scratch scratch;
  scratch.columns = std::make_unique_for_overwrite<std::int32_t[]>(largest);
  WcsrEstimate mean;
  double weights = 0;
  for (std::size_t s = 0; s < samples.size(); ++s) {
    if (s + 1 < samples.size()) prefetch(matrix, row_order, samples[s + 1]);
    const auto [shares, weight] = measure(matrix, row_order, samples[s], scratch);
    weights += weight;
    for (std::size_t h = 0; h < kHeights; ++h) {
      mean.gathered_share[h] += weight * shares.gathered_share[h];
      mean.stored_share[h] += weight * shares.stored_share[h];
    }
  }
  for (std::size_t h = 0; h < kHeights; ++h) {
    mean.gathered_share[h] /= weights;
    mean.stored_share[h] /= weights;
  }
  return mean;
}

std::vector<std::int64_t> lengths_of(const CsrMatrix& matrix,
                                     const std::vector<std::int64_t>& rows) {
  std::vector<std::int64_t> lengths;
  lengths.reserve(rows.size());
  for (const std::int64_t row : rows) lengths.push_back(matrix.row_length(row));
  return lengths;
}

}  // namespace

WcsrEstimate expect_by_length(const CsrMatrix& matrix) {
  return expect_by_length(lengths_of(matrix, rows_at_nonzeros(matrix)), matrix.nnz());
}

WcsrEstimate expect_by_length(std::span<const std::int64_t> sampled, std::int64_t nnz) {
  constexpr std::size_t kLengths = 16;
  std::array<double, kLengths> lengths{};  // of the rows of evenly spaced nonzeros
  for (std::size_t i = 0; i < kLengths; ++i)
    lengths[i] = static_cast<double>(sampled[(2 * i + 1) * kSamples / kLengths / 2]);
  WcsrEstimate mean;
  static_assert(kWcsrHeights == std::array{8, 16, 32});
  for (const double row : lengths) {
    // `share`: a row has a column of `column` nonzeros with probability q, so `height` rows have it
    // `height * q` times, and once at least with probability 1 - (1 - q)^height.
    std::array<double, kHeights> share{};
    for (const double column : lengths) {
      const double q = std::min(1.0, row * column / static_cast<double>(nnz));
      double none = 1 - q;  // to the power of the height; 768 calls of pow take 30 us
      none *= none;
      none *= none;
      for (std::size_t h = 0; h < kHeights; ++h) {
        none *= none;
        share[h] += (1 - none) / (kWcsrHeights[h] * q) / kLengths;
      }
    }
    for (std::size_t h = 0; h < kHeights; ++h) {
      const double height = kWcsrHeights[h];
      const double filled = std::ceil(share[h] * height * row / kTileColumns) * kTileColumns;
      mean.gathered_share[h] += share[h] / kLengths;
      mean.stored_share[h] += filled / (height * row) / kLengths;
    }
  }
  return mean;
}

std::vector<std::int64_t> rows_at_nonzeros(const CsrMatrix& matrix) {
  if (matrix.nnz() == 0) return {};
  std::vector<std::int64_t> rows(kSamples, 0), entries(kSamples);
  for (std::int64_t s = 0; s < kSamples; ++s)
    entries[s] =
        static_cast<std::int64_t>((static_cast<double>(s) + 0.5) / static_cast<double>(kSamples) *
                                  static_cast<double>(matrix.nnz()));
  // All samples look for their row at once, so that they wait for memory at the same time.
  for (auto way = static_cast<std::int64_t>(std::bit_floor(static_cast<std::size_t>(matrix.rows)));
       way > 0; way /= 2)
    for (std::int64_t s = 0; s < kSamples; ++s) {
      const std::int64_t row = std::min(rows[s] + way, matrix.rows);
      rows[s] = matrix.row_ptr[row] <= entries[s] ? row : rows[s];
    }
  return rows;
}

WcsrEstimate estimate_wcsr(const CsrMatrix& matrix, const Permutation& row_order) {
  if (matrix.nnz() == 0) return {};
  if (row_order.empty()) return estimate_wcsr_at(matrix, rows_at_nonzeros(matrix));
  return estimate(matrix, row_order, draw_groups(matrix, row_order));
}

WcsrEstimate estimate_wcsr_at(const CsrMatrix& matrix, const std::vector<std::int64_t>& sampled) {
  return estimate(matrix, {}, draw_groups(matrix, sampled));
}

double row_length_variation(const CsrMatrix& matrix) {
  return row_length_variation(matrix, rows_at_nonzeros(matrix));
}

double row_length_variation(const CsrMatrix& matrix, const std::vector<std::int64_t>& sampled) {
  return row_length_variation(lengths_of(matrix, sampled), matrix.rows, matrix.nnz());
}

double row_length_variation(std::span<const std::int64_t> lengths, std::int64_t rows,
                            std::int64_t nnz) {
  if (lengths.empty()) return 0;
  // The mean square of the lengths is their mean times the mean length of a nonzero's row.
  double length = 0;
  for (const std::int64_t each : lengths) length += static_cast<double>(each) / kSamples;
  const double mean = static_cast<double>(nnz) / static_cast<double>(rows);
  return std::sqrt(std::max(0.0, length / mean - 1));
}

}  // namespace spmmbench
