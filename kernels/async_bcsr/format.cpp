#include "async_bcsr/format.hpp"

#include <algorithm>
#include <numeric>

#include "core/parallel.hpp"

namespace spmmbench::async_bcsr {
namespace {

// Candidates looked at for one unit row: all of a model's weight matrix, and a neighbourhood (in
// order of length) of very tall ones, so that the pairs compared stay bounded.
constexpr std::int64_t kMostComparisons = std::int64_t{1} << 22;
constexpr std::int64_t kLeastCandidates = 16;

struct UnitRows {
  const BcsrPattern& pattern;
  std::int64_t count() const {
    return (pattern.rows + BcsrGroups::kUnitRows - 1) / BcsrGroups::kUnitRows;
  }
  std::int64_t block_row(std::int64_t unit) const {
    return unit * BcsrGroups::kUnitRows / pattern.bm;
  }
  std::int64_t begin(std::int64_t unit) const { return pattern.block_row_ptr[block_row(unit)]; }
  std::int64_t end(std::int64_t unit) const { return pattern.block_row_ptr[block_row(unit) + 1]; }
  std::int64_t length(std::int64_t unit) const { return end(unit) - begin(unit); }
  std::int64_t common_columns(std::int64_t unit, std::int64_t other) const {
    const std::int32_t* const columns = pattern.block_col.data();
    const std::int32_t *i = columns + begin(unit), *j = columns + begin(other);
    std::int64_t common = 0;
    while (i != columns + end(unit) && j != columns + end(other)) {
      const std::int32_t a = *i, b = *j;
      common += a == b;
      i += a <= b;
      j += b <= a;
    }
    return common;
  }
};

std::vector<std::int32_t> group_by_overlap(const UnitRows& rows) {
  std::vector<std::int32_t> order(rows.count());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return rows.length(a) > rows.length(b); });
  const auto candidates = static_cast<std::size_t>(BcsrGroups::candidates(rows.count()));
  std::vector<std::int32_t> out;
  std::vector<char> taken(order.size(), 0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (taken[i] != 0) continue;
    std::size_t best = 0;
    std::int64_t best_common = -1;
    const std::size_t last = std::min(order.size(), i + 1 + candidates);
    for (std::size_t j = i + 1; j < last; ++j) {
      if (taken[j] != 0) continue;
      const std::int64_t common = rows.common_columns(order[i], order[j]);
      if (common > best_common) best = j, best_common = common;
    }
    taken[best_common < 0 ? i : best] = 1;
    out.push_back(order[i]);
    out.push_back(best_common < 0 ? -1 : order[best]);
  }
  return out;
}

// The steps of one group, from the sorted block lists of its unit rows.
void append_steps(const UnitRows& rows, const std::int32_t* unit_row, int unit_k,
                  std::vector<BcsrStep>& steps) {
  constexpr int kHeight = BcsrStep::kHeight;
  const BcsrPattern& p = rows.pattern;
  std::int64_t next[kHeight] = {}, end[kHeight] = {};
  for (int r = 0; r < kHeight; ++r)
    if (unit_row[r] >= 0) next[r] = rows.begin(unit_row[r]), end[r] = rows.end(unit_row[r]);
  while (true) {
    std::int32_t column = INT32_MAX;
    for (int r = 0; r < kHeight; ++r)
      if (next[r] < end[r]) column = std::min(column, p.block_col[next[r]]);
    if (column == INT32_MAX) break;
    BcsrStep step;
    for (int r = 0; r < kHeight; ++r)
      if (next[r] < end[r] && p.block_col[next[r]] == column)
        step.a_row[r] = static_cast<std::int32_t>(
            next[r]++ * p.bm + unit_row[r] * std::int64_t{BcsrGroups::kUnitRows} % p.bm);
    for (int k = 0; k < p.bk && std::int64_t{column} * p.bk + k < p.cols; k += unit_k) {
      step.k = column * p.bk + k;
      step.a_column = k;
      steps.push_back(step);
    }
  }
  if (steps.empty()) steps.emplace_back();
}

std::int32_t count_blocks(const std::vector<BcsrStep>& steps) {
  std::int32_t blocks = 0;
  for (const BcsrStep& step : steps)
    for (const std::int32_t row : step.a_row) blocks += row >= 0 ? 1 : 0;
  return blocks;
}

}  // namespace

BcsrGroups BcsrGroups::build(const BcsrPattern& pattern, int unit_k, BcsrGrouping grouping) {
  const UnitRows rows{pattern};
  std::vector<std::int32_t> members;
  if (grouping == BcsrGrouping::overlap) {
    members = group_by_overlap(rows);
  } else {
    members.assign((rows.count() + kHeight - 1) / kHeight * kHeight, -1);
    std::iota(members.begin(), members.begin() + rows.count(), 0);
  }
  const auto groups = static_cast<std::int64_t>(members.size()) / kHeight;
  std::vector<std::vector<BcsrStep>> steps(groups);
  ExceptionTrap trap;
#pragma omp parallel for schedule(dynamic, 16)
  for (std::int64_t g = 0; g < groups; ++g)
    trap.run([&] { append_steps(rows, members.data() + g * kHeight, unit_k, steps[g]); });
  trap.rethrow();

  std::vector<std::int64_t> order(groups);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return steps[a].size() > steps[b].size();
  });
  BcsrGroups out;
  for (const std::int64_t g : order) {
    out.unit_row.insert(out.unit_row.end(), members.begin() + g * kHeight,
                        members.begin() + (g + 1) * kHeight);
    out.steps.insert(out.steps.end(), steps[g].begin(), steps[g].end());
    out.step_ptr.push_back(static_cast<std::int32_t>(out.steps.size()));
    out.block_count.push_back(count_blocks(steps[g]));
  }
  return out;
}

std::int64_t BcsrGroups::candidates(std::int64_t unit_rows) {
  return std::max(kLeastCandidates, kMostComparisons / std::max<std::int64_t>(1, unit_rows));
}

}  // namespace spmmbench::async_bcsr
