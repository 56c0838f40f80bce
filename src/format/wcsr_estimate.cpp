#include "format/wcsr_estimate.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace spmmbench {
namespace {

constexpr std::int64_t kGroupRows = 32;
constexpr std::int64_t kTile = WcsrShape{}.tile_columns;
constexpr std::int64_t kSamples = 64, kLeastSamples = 16;
// Of one group, or less where the caller wants few in all.
constexpr std::int64_t kMostRead = 1 << 12;  // where columns are full
constexpr std::int64_t kMostCounted = 512;   // of these
constexpr std::int64_t kMostSized = 4096;    // groups of an ordered matrix
constexpr std::size_t kHeights = kWcsrHeights.size();
static_assert(kWcsrHeights[0] == 8 && kWcsrHeights[1] == 16 && kWcsrHeights[2] == kGroupRows);

std::uint32_t hash(std::int32_t column) {
  constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio
  return static_cast<std::uint32_t>(static_cast<std::uint32_t>(column) * kMultiplier >> 32);
}

// For each column of a group the last of the group's four lowest windows that had it. Open
// addressing; columns beyond what was expected are not kept once three quarters are taken, which
// counts them too often.
class LastWindow {
 public:
  void reset(std::int64_t columns) {
    const std::size_t slots = std::bit_ceil(static_cast<std::size_t>(2 * columns + 32));
    column_.assign(slots, -1);
    window_.resize(slots);
    mask_ = slots - 1;
    free_ = slots / 4 * 3;
  }
  // The window at the last call with this column, -1 at the first; from now on `window`.
  int exchange(std::int32_t column, int window) {
    std::size_t at = hash(column) & mask_;
    while (column_[at] != column && column_[at] >= 0) at = (at + 1) & mask_;
    const int before = column_[at] < 0 ? -1 : window_[at];
    if (before < 0 && free_ == 0) return -1;
    free_ -= before < 0 ? 1 : 0;
    column_[at] = column;
    window_[at] = static_cast<std::int8_t>(window);
    return before;
  }

 private:
  std::vector<std::int32_t> column_;
  std::vector<std::int8_t> window_;
  std::size_t mask_ = 0;
  std::size_t free_ = 0;
};

// Where rows have many nonzeros some columns stand for all: visit(column) for the entries of `row`
// in one of `parts` even ranges of the columns. Looked for from where even rows have them, since
// every new place of a row that is read costs more than counting there.
template <class Visit>
void for_part_of_row(const CsrMatrix& matrix, std::int64_t row, std::int64_t parts,
                     std::int64_t part, Visit visit) {
  const auto* const begin = matrix.col_idx.data() + matrix.row_ptr[row];
  const auto* const end = matrix.col_idx.data() + matrix.row_ptr[row + 1];
  const std::int64_t first = matrix.cols * part / parts, last = matrix.cols * (part + 1) / parts;
  const auto* entry = begin;
  if (part > 0) {
    const auto* low = begin + (end - begin) * part / parts;  // first <= *high where it is no end
    const auto* high = low;
    for (std::ptrdiff_t way = 1; low > begin && *(low - 1) >= first; way *= 2)
      high = low, low -= std::min(way, low - begin);
    for (std::ptrdiff_t way = 1; high < end && *high < first; way *= 2)
      low = high, high += std::min(way, end - high);
    entry = std::lower_bound(low, high, first);
  }
  for (; entry < end && *entry < last; ++entry) visit(*entry);
}

constexpr WcsrEstimate kNothingShared = {{1, 1, 1}, {1, 1, 1}};

struct Group {
  std::int64_t first, last, nnz;  // places [first, last)
};

// Of one group, as shares of its nonzeros. Window w of 8 rows lies in window w / 2 of 16. Of a
// group with many entries only every step-th column is counted, those of the lowest hashes, and
// where most columns have an entry only one part of them is looked at, another one of every sample.
WcsrEstimate measure(const CsrMatrix& matrix, const Permutation& row_order, const Group& group,
                     std::int64_t sample, std::int64_t most_entries, LastWindow& last_window) {
  const std::int64_t most_read = std::min(kMostRead, most_entries / 4);
  const std::int64_t most_counted = std::min(kMostCounted, most_entries / 32);
  const std::int64_t parts = group.nnz < matrix.cols ? 1 : (group.nnz + most_read - 1) / most_read;
  const std::int64_t step = (group.nnz / parts + most_counted - 1) / most_counted;
  const std::uint32_t highest = std::numeric_limits<std::uint32_t>::max() / step;
  std::array<std::array<std::int64_t, 4>, kHeights> distinct{};  // by height and window
  std::int64_t nnz = 0;
  last_window.reset(group.nnz / parts / step);
  std::vector<std::int32_t> counted;  // columns of one row
  for (std::int64_t place = group.first; place < group.last; ++place) {
    const std::int64_t row = row_order.empty() ? place : row_order[place];
    const auto window = static_cast<int>((place - group.first) / kWcsrHeights[0]);
    if (std::ssize(counted) < matrix.row_length(row)) counted.resize(matrix.row_length(row));
    std::size_t kept = 0;  // written without a branch, which would be taken at random
    for_part_of_row(matrix, row, parts, (parts / 2 + sample) % parts, [&](std::int32_t column) {
      ++nnz;
      counted[kept] = column;
      kept += hash(column) <= highest ? 1 : 0;
    });
    for (std::size_t i = 0; i < kept; ++i) {
      const int before = last_window.exchange(counted[i], window);
      for (std::size_t h = 0; h < kHeights; ++h)
        distinct[h][window >> h] += before < 0 || before >> h != window >> h;
    }
  }
  if (nnz == 0) return kNothingShared;
  WcsrEstimate out;
  for (std::size_t h = 0; h < kHeights; ++h)
    for (const std::int64_t counted : distinct[h]) {
      const double columns = static_cast<double>(counted * step) / static_cast<double>(nnz) *
                             static_cast<double>(group.nnz);
      const double filled = std::ceil(columns / kTile) * kTile;
      out.gathered_share[h] += columns / static_cast<double>(group.nnz);
      out.stored_share[h] += filled / static_cast<double>(group.nnz);
    }
  return out;
}

// In proportion to their nonzeros: a group with many of them is drawn more than once, and counts
// so. Of an ordered matrix, whose row pointers nobody has, at most kMostSized groups take part.
std::vector<Group> draw_groups(const CsrMatrix& matrix, const Permutation& row_order) {
  std::vector<Group> drawn;
  const auto places = [&](std::int64_t group) {
    const std::int64_t first = group * kGroupRows;
    return Group{first, std::min(first + kGroupRows, matrix.rows), 0};
  };
  if (row_order.empty()) {
    for (const std::int64_t row : rows_at_nonzeros(matrix)) {
      Group group = places(row / kGroupRows);
      group.nnz = matrix.row_ptr[group.last] - matrix.row_ptr[group.first];
      drawn.push_back(group);
    }
    return drawn;
  }
  const std::int64_t groups = (matrix.rows + kGroupRows - 1) / kGroupRows;
  const std::int64_t sized = std::min(groups, kMostSized);
  std::vector<Group> all(sized);
  std::int64_t nnz = 0;
  for (std::int64_t i = 0; i < sized; ++i) {
    all[i] = places(groups * i / sized);
    for (std::int64_t place = all[i].first; place < all[i].last; ++place)
      all[i].nnz += matrix.row_length(row_order[place]);
    nnz += all[i].nnz;
  }
  std::int64_t end = 0, s = 0;
  for (const Group& group : all) {
    end += group.nnz;
    for (; nnz * (2 * s + 1) < end * 2 * kSamples; ++s) drawn.push_back(group);
  }
  return drawn;
}

}  // namespace

double new_column_share(const CsrMatrix& matrix, const Permutation& row_order, std::int64_t kept) {
  constexpr std::int64_t kStretches = 4;
  constexpr std::int64_t kMostEntries = 1 << 18;  // of a stretch
  const auto row_at = [&](std::int64_t place) {
    return row_order.empty() ? place : std::int64_t{row_order[place]};
  };
  struct Seen {
    std::int64_t entries, distinct;
  };
  std::array<std::int64_t, kStretches> first{};  // place where a stretch begins
  std::int64_t place = 0, before = 0;            // entries before `place`
  for (std::int64_t stretch = 0; stretch < kStretches; ++stretch) {
    const std::int64_t start = matrix.nnz() * stretch / kStretches;
    for (; place < matrix.rows && before < start; ++place)
      before += matrix.row_length(row_at(place));
    first[stretch] = place;
  }
  std::array<double, kStretches> share{};
#pragma omp parallel for schedule(static, 1)
  for (std::int64_t stretch = 0; stretch < kStretches; ++stretch) {
    std::vector<bool> seen(matrix.cols, false);
    std::vector<Seen> after = {{0, 0}};  // each row
    for (std::int64_t at = first[stretch];
         at < matrix.rows && after.back().distinct < kept && after.back().entries < kMostEntries;
         ++at) {
      Seen now = after.back();
      const std::int64_t row = row_at(at);
      for (std::int64_t entry = matrix.row_ptr[row]; entry < matrix.row_ptr[row + 1]; ++entry) {
        const std::int32_t column = matrix.col_idx[entry];
        now.distinct += seen[column] ? 0 : 1;
        seen[column] = true;
      }
      now.entries += matrix.row_length(row);
      after.push_back(now);
    }
    // The first half fills the cache.
    const Seen all = after.back();
    const auto half = std::lower_bound(after.begin(), after.end(), all.entries / 2,
                                       [](const Seen& seen_so_far, std::int64_t entries) {
                                         return seen_so_far.entries < entries;
                                       });
    share[stretch] = static_cast<double>(all.distinct - half->distinct) /
                     static_cast<double>(std::max<std::int64_t>(all.entries - half->entries, 1));
  }
  return std::accumulate(share.begin(), share.end(), 0.0) / kStretches;
}

std::vector<std::int64_t> rows_at_nonzeros(const CsrMatrix& matrix) {
  std::vector<std::int64_t> rows;
  auto row = matrix.row_ptr.begin();  // of the sample before; one further at most doubles the way
  for (std::int64_t s = 0; s < kSamples && matrix.nnz() > 0; ++s) {
    const auto entry =
        static_cast<std::int64_t>((static_cast<double>(s) + 0.5) / static_cast<double>(kSamples) *
                                  static_cast<double>(matrix.nnz()));
    std::int64_t way = 1;
    while (matrix.row_ptr.end() - row > way && row[way] <= entry) way *= 2;
    row = std::upper_bound(row, matrix.row_ptr.end() - row > way ? row + way : matrix.row_ptr.end(),
                           entry) -
          1;
    rows.push_back(row - matrix.row_ptr.begin());
  }
  return rows;
}

WcsrEstimate estimate_wcsr(const CsrMatrix& matrix, const Permutation& row_order,
                           std::int64_t most_entries) {
  WcsrEstimate mean;
  if (matrix.nnz() == 0) return mean;
  const std::vector<Group> drawn = draw_groups(matrix, row_order);
  std::int64_t entries = 0;
  for (const Group& group : drawn) entries += group.nnz;
  std::int64_t every = 1;
  while (kSamples / every > kLeastSamples && entries / every > most_entries) every *= 2;
  LastWindow last_window;
  WcsrEstimate sampled;
  std::int64_t measured = -1;
  double samples = 0;
  for (std::size_t s = every / 2; s < drawn.size(); s += every) {
    if (drawn[s].first != measured)
      sampled = measure(matrix, row_order, drawn[s], s / every, most_entries, last_window);
    measured = drawn[s].first;
    samples += 1;
    for (std::size_t h = 0; h < kHeights; ++h) {
      mean.gathered_share[h] += sampled.gathered_share[h];
      mean.stored_share[h] += sampled.stored_share[h];
    }
  }
  if (samples == 0) return kNothingShared;
  for (std::size_t h = 0; h < kHeights; ++h) {
    mean.gathered_share[h] /= samples;
    mean.stored_share[h] /= samples;
  }
  return mean;
}

double row_length_variation(const CsrMatrix& matrix) {
  if (matrix.nnz() == 0) return 0;
  // The mean square of the lengths is their mean times the mean length of a nonzero's row.
  double length = 0;
  for (const std::int64_t row : rows_at_nonzeros(matrix))
    length += static_cast<double>(matrix.row_length(row)) / kSamples;
  const double mean = static_cast<double>(matrix.nnz()) / static_cast<double>(matrix.rows);
  return std::sqrt(std::max(0.0, length / mean - 1));
}

}  // namespace spmmbench
