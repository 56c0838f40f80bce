#include "select/row_overlap.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "format/wcsr_estimate.hpp"

namespace spmmbench {
namespace {

std::span<const std::int32_t> columns_of(const CsrMatrix& matrix, std::int64_t row) {
  return {matrix.col_idx.data() + matrix.row_ptr[row],
          static_cast<std::size_t>(matrix.row_length(row))};
}

// The columns that both rows have. Looks for the shorter row's columns in the longer row.
std::int64_t shared_columns(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  if (a.size() > b.size()) std::swap(a, b);
  return std::count_if(a.begin(), a.end(), [b](std::int32_t column) {
    return std::binary_search(b.begin(), b.end(), column);
  });
}

}  // namespace

double row_overlap(const CsrMatrix& matrix) {
  constexpr std::size_t kColumns = 4;  // by which rows are looked for, of every sampled row
  constexpr std::size_t kRows = 3;     // that are looked for by each
  constexpr std::int64_t kFewest = 2;  // columns of a row: one finds others, one may be shared
  // A column by which rows are looked for, and the rows that were found.
  struct Probe {
    std::int32_t column;
    std::vector<std::int64_t> rows = {};
  };
  std::vector<std::int64_t> sampled = rows_at_nonzeros(matrix);
  std::erase_if(sampled, [&](std::int64_t row) { return matrix.row_length(row) < kFewest; });
  if (sampled.empty()) return 1;

  std::vector<Probe> probes;
  for (const std::int64_t row : sampled) {
    const auto columns = columns_of(matrix, row);
    const std::size_t count = std::min(kColumns, columns.size());
    for (std::size_t i = 0; i < count; ++i)
      probes.push_back({columns[(2 * i + 1) * columns.size() / (2 * count)]});
  }
  std::ranges::sort(probes, {}, &Probe::column);
  const auto twice = std::ranges::unique(probes, {}, &Probe::column);
  probes.erase(twice.begin(), twice.end());
  std::vector<bool> wanted(matrix.cols);
  for (const Probe& probe : probes) wanted[probe.column] = true;
  const auto probe_of = [&](std::int32_t column) -> Probe& {
    return *std::ranges::lower_bound(probes, column, {}, &Probe::column);
  };
  std::size_t open = probes.size();  // probes that look for more rows
  for (std::int64_t row = 0; row < matrix.rows && open > 0; ++row)
    for (const std::int32_t column : columns_of(matrix, row)) {
      if (!wanted[column]) continue;
      Probe& probe = probe_of(column);
      probe.rows.push_back(row);
      if (probe.rows.size() <= kRows) continue;  // one of them may be the sampled row itself
      wanted[column] = false;
      --open;
    }

  double sum = 0;
  for (const std::int64_t row : sampled) {
    const auto columns = columns_of(matrix, row);
    const std::size_t count = std::min(kColumns, columns.size());
    std::int64_t most = 1;
    for (std::size_t i = 0; i < count; ++i)
      for (const std::int64_t other :
           probe_of(columns[(2 * i + 1) * columns.size() / (2 * count)]).rows)
        if (other != row) most = std::max(most, shared_columns(columns, columns_of(matrix, other)));
    sum += static_cast<double>(most - 1) / static_cast<double>(columns.size() - 1);
  }
  return sum / static_cast<double>(sampled.size());
}

}  // namespace spmmbench
