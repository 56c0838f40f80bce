// For plug-ins that keep A in windows, as kernels on tensor cores do: some rows together, with the
// columns that they have, each once and in ascending order. C++17, without CUDA.
//
//   const Windows windows = windows_of(*problem.a, 16, 8);
//   const auto& [height, begin, columns, place] = windows;
//   // Nonzero i of window w multiplies row columns[begin[w] + place[i]] of B.
#ifndef SPMMBENCH_PLUGIN_WINDOWS_HPP
#define SPMMBENCH_PLUGIN_WINDOWS_HPP

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "spmmbench/plugin.h"

namespace spmmbench::plugin {

struct Windows {
  std::int64_t height = 0;            // rows of a window; the last may have fewer
  std::vector<std::int64_t> begin;    // one more than windows: where the columns of each begin
  std::vector<std::int32_t> columns;  // of all windows, one window after another
  std::vector<std::int32_t> place;    // of each nonzero: which of its window's columns it has
  std::int64_t count() const { return static_cast<std::int64_t>(begin.size()) - 1; }
};

// Windows of `height` rows of A, in the order of the rows. The columns of each window are filled up
// to a multiple of `group` by repeating the last one: it is safe to read and meets no nonzero.
// A lies on the host with 32-bit indices; its columns need not be sorted. Throws
// std::invalid_argument for another A, and for a height or group below 1. Takes the time of sorting
// the columns of each window.
inline Windows windows_of(const spmmbench_csr& a, std::int64_t height, std::int64_t group = 1) {
  if (a.memory != SPMMBENCH_HOST || a.row_ptr_type != SPMMBENCH_I32 ||
      a.col_idx_type != SPMMBENCH_I32)
    throw std::invalid_argument("windows_of: expected A on the host with 32-bit indices");
  if (height < 1 || group < 1)
    throw std::invalid_argument("windows_of: expected a height and a group of at least 1");
  const auto* const row_ptr = static_cast<const std::int32_t*>(a.row_ptr);
  const auto* const col_idx = static_cast<const std::int32_t*>(a.col_idx);
  Windows out;
  out.height = height;
  out.begin = {0};
  out.place.resize(static_cast<std::size_t>(a.nnz));
  std::vector<std::int32_t> own;
  for (std::int64_t row = 0; row < a.rows; row += height) {
    const std::int32_t first = row_ptr[row], last = row_ptr[std::min(row + height, a.rows)];
    own.assign(col_idx + first, col_idx + last);
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
    for (std::int32_t i = first; i < last; ++i)
      out.place[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(
          std::lower_bound(own.begin(), own.end(), col_idx[i]) - own.begin());
    const auto size = static_cast<std::int64_t>(own.size());
    if (size > 0)
      own.resize(static_cast<std::size_t>((size + group - 1) / group * group), own.back());
    out.columns.insert(out.columns.end(), own.begin(), own.end());
    out.begin.push_back(static_cast<std::int64_t>(out.columns.size()));
  }
  return out;
}

}  // namespace spmmbench::plugin

#endif
