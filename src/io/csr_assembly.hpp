#pragma once
// From entries in file order to CSR: symmetric halves expanded, rows sorted, duplicates summed.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "spmmbench/matrix.hpp"

namespace spmmbench {

enum class Symmetry { general, symmetric, skew_symmetric };

struct PatternEntry {
  std::int32_t row, col;
};
struct ValueEntry {
  std::int32_t row, col;
  double value;  // rounded to fp32, where that is wanted, after duplicates are added
};

// Entries of one part of the file, in file order, and the rows of the result that they touch.
template <class Entry>
struct EntryBlock {
  std::vector<Entry> entries;
  std::int32_t first_row = std::numeric_limits<std::int32_t>::max();
  std::int32_t last_row = -1;

  void add(const Entry& entry, Symmetry symmetry) {
    entries.push_back(entry);
    first_row = std::min(first_row, entry.row);
    last_row = std::max(last_row, entry.row);
    if (symmetry == Symmetry::general) return;
    first_row = std::min(first_row, entry.col);
    last_row = std::max(last_row, entry.col);
  }
};

// Columns ascending within each row, duplicates added in fp64 in the order they stand in. `values`
// may be empty. Where there are values64 they are added, and `values` has the sums rounded. Returns
// the rows that had duplicates, ascending. The result does not depend on `threads`.
std::vector<std::int64_t> sort_rows(CsrMatrix& csr, int threads);

// Gives rows that had duplicates the sums of what `entries` has of them, which fp32 has not
// rounded: all their entries, in the order of addition. `csr` has their columns, sorted.
void set_sums(CsrMatrix& csr, std::vector<ValueEntry> entries);

// The CSR of all blocks; `blocks` is freed. Duplicates are added in fp64 in file order. The result
// does not depend on `threads` nor on where the blocks were cut. PatternEntry gives empty `values`.
// `fp64`: values64 too.
template <class Entry>
CsrMatrix assemble_csr(std::int64_t rows, std::int64_t cols, Symmetry symmetry,
                       std::vector<EntryBlock<Entry>> blocks, int threads, bool fp64 = false);

extern template CsrMatrix assemble_csr(std::int64_t, std::int64_t, Symmetry,
                                       std::vector<EntryBlock<PatternEntry>>, int, bool);
extern template CsrMatrix assemble_csr(std::int64_t, std::int64_t, Symmetry,
                                       std::vector<EntryBlock<ValueEntry>>, int, bool);

}  // namespace spmmbench
