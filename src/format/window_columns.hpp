#pragma once
// The distinct columns of a window of rows, in time linear in the window's nonzeros.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "spmmbench/matrix.hpp"

namespace spmmbench {

// One per thread. A bit per column, and the 64-bit words touched.
class WindowColumns {
 public:
  explicit WindowColumns(std::int64_t cols) : bits_(cols / 64 + 1), rank_(cols / 64 + 1) {}
  static std::int64_t bytes(std::int64_t cols) { return cols / 8 + cols / 16; }

  void add_row(const CsrMatrix& matrix, std::int64_t row) {
    for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e) {
      const std::uint32_t column = static_cast<std::uint32_t>(matrix.col_idx[e]);
      std::uint64_t& word = bits_[column / 64];
      if (word == 0) touched_.push_back(static_cast<std::int32_t>(column / 64));
      word |= std::uint64_t{1} << (column % 64);
    }
  }

  std::int64_t count() const {
    std::int64_t count = 0;
    for (const std::int32_t word : touched_) count += std::popcount(bits_[word]);
    return count;
  }

  // Writes the columns in ascending order; afterwards `rank` is valid.
  void sorted(std::int32_t* columns) {
    std::sort(touched_.begin(), touched_.end());
    std::int32_t next = 0;
    for (const std::int32_t word : touched_) {
      rank_[word] = next;
      for (std::uint64_t rest = bits_[word]; rest != 0; rest &= rest - 1)
        columns[next++] = word * 64 + std::countr_zero(rest);
    }
  }

  // Position of a column, which was added, among the sorted ones.
  std::int32_t rank(std::int32_t column) const {
    const std::uint64_t below = (std::uint64_t{1} << (column % 64)) - 1;
    return rank_[column / 64] + std::popcount(bits_[column / 64] & below);
  }

  void clear() {
    for (const std::int32_t word : touched_) bits_[word] = 0;
    touched_.clear();
  }

 private:
  std::vector<std::uint64_t> bits_;
  std::vector<std::int32_t> rank_;     // of each touched word's first column
  std::vector<std::int32_t> touched_;  // words that are not zero
};

}  // namespace spmmbench
