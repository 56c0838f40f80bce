#pragma once
// The numbers that describe A when a kernel is selected. They are estimated from samples of its
// rows, which takes far less time than preparing any kernel.

#include <string>
#include <utility>
#include <vector>

#include "format/wcsr_estimate.hpp"
#include "spmmbench/matrix.hpp"

namespace spmmbench {

inline constexpr int kMostOfTwoFour = 2;
// Sparser matrices are not asked whether they are in 2:4: that form stores half of all entries, at
// 1.1 bytes for each entry of A where CSR has 6 bytes for each nonzero (fp16).
inline constexpr double kLeastOfTwoFour = 0.05;
// Blocks that are emptier than this were never the fastest: the tensor cores multiply too many
// zeros (docs/decisions/selection-model.md).
inline constexpr double kLeastBlockFill = 0.02;

struct MatrixFeatures {
  double rows = 0, cols = 0, nnz = 0;
  double mean_row = 0;    // nonzeros
  double cv_row = 0;      // coefficient of variation of the row lengths
  double max_row = 0;     // nonzeros of the longest row; exact where it is far above the mean
  double empty_rows = 0;  // share of the rows
  // Windows of 8, 16 and 32 neighbouring rows: distinct columns over nonzeros, and the same with
  // tiles of 16 columns filled up.
  double gathered_8 = 0, gathered_16 = 0, gathered_32 = 0;
  double stored_8 = 0, stored_16 = 0, stored_32 = 0;
  // Blocks of 64 columns with a nonzero in a band of 128 rows, mean, and nonzeros over the entries
  // of those blocks. Where gathered_32 says that blocks are nearly empty they are not counted: the
  // matrix has all blocks if that leaves them kLeastBlockFill full, and else both are 0.
  double band_blocks = 0;
  double block_fill = 0;
  // The most nonzeros in four neighbouring columns 4 g to 4 g + 3 of a sampled row: at most
  // kMostOfTwoFour where the matrix is in 2:4 structured sparsity. Rows after one that has more are
  // not read. 4, without reading, where fewer than kLeastOfTwoFour of the entries are nonzeros.
  double most_of_four = 0;
  // Columns with nonzeros: fewer than `cols` only where a sample tells that they are at most half
  // (select/used_columns.hpp). 0: not looked for.
  double used_cols = 0;
  // What select/row_overlap.hpp returns. It takes longer than the others, and features_of leaves it
  // at 1: not known, and the most that rows can overlap.
  double row_overlap = 1;
};

MatrixFeatures features_of(const CsrMatrix& matrix);

// Rows of B that A may refer to.
inline double columns_in_use(const MatrixFeatures& f) {
  return f.used_cols > 0 ? f.used_cols : f.cols;
}

// Their part that estimate_wcsr returns for the natural order.
WcsrEstimate windows_of(const MatrixFeatures& features);
void set_windows(const WcsrEstimate& windows, MatrixFeatures& features);

// Whether blocks may be full enough to be worth counting; needs features with windows. If not, the
// matrix is taken to have all blocks (take_all_blocks).
bool may_fill_blocks(const MatrixFeatures& features);
void take_all_blocks(MatrixFeatures& features);

// Name and value of every feature, as result rows and the fit know them.
std::vector<std::pair<std::string, double>> named_features(const MatrixFeatures& features);
// The inverse. Unknown names are ignored.
void set_feature(MatrixFeatures& features, const std::string& name, double value);

}  // namespace spmmbench
