#pragma once
// BCSR (AsyncSparse, arXiv 2604.17834): every bm x bk block that holds an entry is stored dense, so
// that block i is rows [i * bm, (i + 1) * bm) of one stacked (blocks * bm) x bk matrix: a plain
// dense box for the bulk tensor copies. Block rows and columns are aligned at multiples of bm and
// bk; the blocks at the lower and right edges are padded with zeros like all others.

#include <cstdint>
#include <vector>

#include "spmmbench/format.hpp"
#include "spmmbench/matrix.hpp"

namespace spmmbench {

// Where the blocks are, without their values.
struct BcsrPattern {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t nnz = 0;
  int bm = 64;
  int bk = 64;
  std::vector<std::int64_t> block_row_ptr = {0};  // block_rows() + 1
  std::vector<std::int32_t> block_col;            // blocks(), ascending within a block row

  static BcsrPattern build(const CsrMatrix& matrix, int bm, int bk);

  std::int64_t block_rows() const { return static_cast<std::int64_t>(block_row_ptr.size()) - 1; }
  std::int64_t blocks() const { return block_row_ptr.back(); }
  std::int64_t stored() const { return blocks() * bm * bk; }
  FormatStats stats(int value_bytes = 2) const;  // named bcsr_BM or bcsr_BMxBK

  // What the statistics are made of, beside the sizes.
  struct Totals {
    std::int64_t blocks = 0;
    std::int64_t longest = 0;  // blocks of a block row
    std::int64_t filled = 0;   // block rows with a block
  };
  Totals totals() const;
  // The same for a pattern whose blocks are not listed, from its totals.
  FormatStats stats(const Totals& totals, int value_bytes) const;
};

struct Bcsr {
  BcsrPattern pattern;
  std::vector<float> values;  // blocks * bm * bk, each block row-major

  static Bcsr build(const CsrMatrix& matrix, BcsrPattern pattern);

  // The matrix without its entries of value zero, which a block cannot tell from padding.
  CsrMatrix unpack() const;
  FormatStats stats() const { return pattern.stats(); }
};

}  // namespace spmmbench
