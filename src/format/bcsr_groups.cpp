#include "format/bcsr_groups.hpp"

#include <algorithm>
#include <numeric>

namespace spmmbench {
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
};

std::int64_t common_columns(const std::vector<std::int32_t>& a, const std::int32_t* b,
                            const std::int32_t* b_end) {
  std::int64_t common = 0;
  for (auto i = a.begin(); i != a.end() && b != b_end;) {
    if (*i == *b) ++common;
    if (*i <= *b) {
      if (*i == *b) ++b;
      ++i;
    } else {
      ++b;
    }
  }
  return common;
}

std::vector<std::int32_t> group_by_overlap(const UnitRows& rows, int height) {
  std::vector<std::int32_t> order(rows.count());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return rows.length(a) > rows.length(b); });
  const std::int32_t* const columns = rows.pattern.block_col.data();
  const std::size_t candidates =
      std::max(kLeastCandidates, kMostComparisons / std::max<std::int64_t>(1, rows.count()));
  std::vector<std::int32_t> out, merged;
  std::vector<char> taken(order.size(), 0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (taken[i] != 0) continue;
    taken[i] = 1;
    out.push_back(order[i]);
    std::vector<std::int32_t> set(columns + rows.begin(order[i]), columns + rows.end(order[i]));
    for (int member = 1; member < height; ++member) {
      std::int64_t best = -1, best_common = -1;
      const std::size_t last = std::min(order.size(), i + 1 + candidates);
      for (std::size_t j = i + 1; j < last; ++j) {
        if (taken[j] != 0) continue;
        const std::int64_t common =
            common_columns(set, columns + rows.begin(order[j]), columns + rows.end(order[j]));
        if (common > best_common) best = static_cast<std::int64_t>(j), best_common = common;
      }
      if (best < 0) {
        out.push_back(-1);
        continue;
      }
      taken[best] = 1;
      const std::int32_t unit = order[best];
      out.push_back(unit);
      merged.clear();
      std::set_union(set.begin(), set.end(), columns + rows.begin(unit), columns + rows.end(unit),
                     std::back_inserter(merged));
      set.swap(merged);
    }
  }
  return out;
}

// The steps of one group, from the sorted block lists of its unit rows.
void append_steps(const UnitRows& rows, const std::int32_t* unit_row, int height, int unit_k,
                  std::vector<BcsrStep>& steps) {
  const BcsrPattern& p = rows.pattern;
  std::int64_t next[BcsrStep::kMaxHeight] = {}, end[BcsrStep::kMaxHeight] = {};
  for (int r = 0; r < height; ++r)
    if (unit_row[r] >= 0) next[r] = rows.begin(unit_row[r]), end[r] = rows.end(unit_row[r]);
  while (true) {
    std::int32_t column = INT32_MAX;
    for (int r = 0; r < height; ++r)
      if (next[r] < end[r]) column = std::min(column, p.block_col[next[r]]);
    if (column == INT32_MAX) return;
    BcsrStep step;
    for (int r = 0; r < height; ++r)
      if (next[r] < end[r] && p.block_col[next[r]] == column)
        step.a_row[r] = static_cast<std::int32_t>(
            next[r]++ * p.bm + unit_row[r] * std::int64_t{BcsrGroups::kUnitRows} % p.bm);
    for (int k = 0; k < p.bk && std::int64_t{column} * p.bk + k < p.cols; k += unit_k) {
      step.k = column * p.bk + k;
      steps.push_back(step);
    }
  }
}

}  // namespace

BcsrGroups BcsrGroups::build(const BcsrPattern& pattern, int height, int unit_k,
                             BcsrGrouping grouping) {
  const UnitRows rows{pattern};
  std::vector<std::int32_t> members;
  if (grouping == BcsrGrouping::overlap) {
    members = group_by_overlap(rows, height);
  } else {
    members.assign((rows.count() + height - 1) / height * height, -1);
    std::iota(members.begin(), members.begin() + rows.count(), 0);
  }
  const auto groups = static_cast<std::int64_t>(members.size()) / height;
  std::vector<std::vector<BcsrStep>> steps(groups);
#pragma omp parallel for schedule(dynamic, 16)
  for (std::int64_t g = 0; g < groups; ++g)
    append_steps(rows, members.data() + g * height, height, unit_k, steps[g]);

  std::vector<std::int64_t> order(groups);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return steps[a].size() > steps[b].size();
  });
  BcsrGroups out;
  out.height = height;
  for (const std::int64_t g : order) {
    out.unit_row.insert(out.unit_row.end(), members.begin() + g * height,
                        members.begin() + (g + 1) * height);
    out.steps.insert(out.steps.end(), steps[g].begin(), steps[g].end());
    out.step_ptr.push_back(static_cast<std::int32_t>(out.steps.size()));
  }
  return out;
}

std::int64_t BcsrGroups::blocks(std::int64_t group) const {
  std::int64_t blocks = 0;
  for (std::int32_t s = step_ptr[group]; s < step_ptr[group + 1]; ++s)
    for (int r = 0; r < height; ++r) blocks += steps[s].a_row[r] >= 0;
  return blocks;
}

}  // namespace spmmbench
