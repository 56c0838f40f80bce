#include "select/row_overlap.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "format/wcsr_estimate.hpp"

namespace spmmbench {
namespace {

std::span<const std::int32_t> columns_of(const CsrMatrix& matrix, std::int64_t row) {
  return {matrix.col_idx.data() + matrix.row_ptr[row],
          static_cast<std::size_t>(matrix.row_length(row))};
}

void prefetch(const std::vector<std::int32_t>& columns, std::int64_t first, std::int64_t last) {
  constexpr std::int64_t kLineEntries = 16;
  for (std::int64_t e = first; e < last; e += kLineEntries) __builtin_prefetch(columns.data() + e);
}

// A column of a sampled row, and the other rows with that column that were found.
struct Probe {
  static constexpr std::size_t kMostFound = 2;
  std::int32_t column;
  std::int64_t row;
  std::array<std::int64_t, kMostFound> others;
  std::size_t found = 0;
};

// Probes by their columns. One comparison tells that no probe has a column.
class Probes {
 public:
  // Leaves out a probe whose slot is taken.
  void add(std::int32_t column, std::int64_t row) {
    const std::size_t at = slot(column);
    if (wanted_[at] != kNone) return;
    wanted_[at] = column;
    index_[at] = static_cast<std::uint8_t>(all_.size());
    all_.push_back({column, row, {}});
    ++open_;
  }
  bool wants(std::int32_t column) const { return wanted_[slot(column)] == column; }
  void found(std::int32_t column, std::int64_t row) {
    const std::size_t at = slot(column);
    Probe& probe = all_[index_[at]];
    if (row == probe.row) return;
    probe.others[probe.found++] = row;
    if (probe.found < Probe::kMostFound) return;
    wanted_[at] = kNone;
    --open_;
  }
  bool all_found() const { return open_ == 0; }
  const std::vector<Probe>& all() const { return all_; }

 private:
  static constexpr std::size_t kSlots = 1 << 12;
  static constexpr std::int32_t kNone = -1;
  static std::size_t slot(std::int32_t column) {
    constexpr std::uint32_t kGolden = 0x9E3779B9;  // 2^32 / golden ratio
    return static_cast<std::uint32_t>(column) * kGolden / (0xFFFFFFFF / kSlots + 1);
  }
  std::vector<std::int32_t> wanted_ = std::vector<std::int32_t>(kSlots, kNone);
  std::array<std::uint8_t, kSlots> index_;  // of the probe in all_, where one is wanted
  std::vector<Probe> all_;
  std::size_t open_ = 0;  // probes that look for more rows
};

// Rows that follow one another, and their entries as far as they are read.
struct Run {
  std::int64_t first_row, last_row, first_entry, last_entry;
};

// Runs of rows from all over the matrix.
std::vector<Run> spread_runs(const CsrMatrix& matrix) {
  // Entries that are read in all and in a run. Reading twice as many chooses no better
  // (docs/decisions/selection-model.md).
  constexpr std::int64_t kLeastRead = 1 << 14, kOneOf = 64;
  constexpr std::int64_t kRun = 1 << 9, kMostOfRun = 4 * kRun;
  const std::int64_t rows_of_run = std::max<std::int64_t>(1, kRun * matrix.rows / matrix.nnz());
  const std::int64_t runs = (matrix.rows + rows_of_run - 1) / rows_of_run;
  const std::int64_t read = std::min(runs, std::max(kLeastRead, matrix.nnz() / kOneOf) / kRun);
  std::vector<Run> out;
  out.reserve(read);
  for (std::int64_t i = 0; i < read; ++i) {
    const std::int64_t first = i * runs / read * rows_of_run;
    const std::int64_t last = std::min(first + rows_of_run, matrix.rows);
    const std::int64_t entry = matrix.row_ptr[first];
    out.push_back({first, last, entry, std::min(matrix.row_ptr[last], entry + kMostOfRun)});
  }
  return out;
}

// Looks for other rows. Every run lies elsewhere in memory, so the one after the next is asked for
// while one is read.
void find_others(const CsrMatrix& matrix, Probes& probes) {
  constexpr std::size_t kAhead = 2;
  const std::vector<Run> runs = spread_runs(matrix);
  for (std::size_t i = 0; i < runs.size() && !probes.all_found(); ++i) {
    if (i + kAhead < runs.size())
      prefetch(matrix.col_idx, runs[i + kAhead].first_entry, runs[i + kAhead].last_entry);
    const Run& run = runs[i];
    const auto begin = matrix.row_ptr.begin() + run.first_row + 1;
    const auto end = matrix.row_ptr.begin() + run.last_row + 1;
    for (std::int64_t e = run.first_entry; e < run.last_entry; ++e)
      if (probes.wants(matrix.col_idx[e]))
        probes.found(matrix.col_idx[e], run.first_row + (std::upper_bound(begin, end, e) - begin));
  }
}

// The share of the other columns of the probe's row that `other` has too.
double share_of(const CsrMatrix& matrix, const Probe& probe, std::int64_t other) {
  constexpr std::size_t kMostCompared = 24;
  const auto mine = columns_of(matrix, probe.row), theirs = columns_of(matrix, other);
  const std::size_t count = std::min(kMostCompared, mine.size());
  int compared = 0, shared = 0;
  auto at = theirs.begin();
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t column = mine[(2 * i + 1) * mine.size() / (2 * count)];
    if (column == probe.column) continue;
    at = std::lower_bound(at, theirs.end(), column);
    ++compared;
    shared += at < theirs.end() && *at == column ? 1 : 0;
  }
  return static_cast<double>(shared) / compared;
}

}  // namespace

double row_overlap(const CsrMatrix& matrix) {
  constexpr std::size_t kRows = 16, kColumns = 2;  // sampled rows, and probes of each
  constexpr std::size_t kLeastFound = kRows / 8;
  const std::vector<std::int64_t> drawn = rows_at_nonzeros(matrix);
  if (drawn.empty()) return kUnknownRowOverlap;
  std::vector<std::int64_t> sampled;
  for (std::size_t i = 0; i < kRows; ++i) {
    const std::int64_t row = drawn[(2 * i + 1) * drawn.size() / (2 * kRows)];
    const bool again = !sampled.empty() && sampled.back() == row;
    if (matrix.row_length(row) > 1 && !again) sampled.push_back(row);
  }
  Probes probes;
  for (const std::int64_t row : sampled) {
    const auto columns = columns_of(matrix, row);
    for (std::size_t i = 0; i < kColumns; ++i)
      probes.add(columns[(2 * i + 1) * columns.size() / (2 * kColumns)], row);
  }
  find_others(matrix, probes);

  double sum = 0;
  std::size_t asked = 0, rows = 0;  // that have a probe; for which another row was found
  for (const std::int64_t row : sampled) {
    std::optional<double> most;
    bool has_probe = false;
    for (const Probe& probe : probes.all()) {
      if (probe.row != row) continue;
      has_probe = true;
      for (std::size_t i = 0; i < probe.found; ++i)
        most = std::max(most, std::optional(share_of(matrix, probe, probe.others[i])));
    }
    sum += most.value_or(0);
    asked += has_probe ? 1 : 0;
    rows += most ? 1 : 0;
  }
  const std::size_t least = std::max<std::size_t>(1, std::min(kLeastFound, asked));
  return rows < least ? kUnknownRowOverlap : sum / static_cast<double>(rows);
}

}  // namespace spmmbench
