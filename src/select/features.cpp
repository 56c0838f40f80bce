#include "select/features.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <tuple>

#include "core/row_lengths.hpp"
#include "core/two_of_four.hpp"
#include "format/wcsr_estimate.hpp"
#include "select/full_blocks.hpp"
#include "select/used_columns.hpp"

namespace spmmbench {
namespace {

constexpr std::int64_t kBandRows = 128, kBlockColumns = 64;

// Samples bands of rows, in proportion to their nonzeros: a few at first, and more where their
// blocks are full enough to matter. In a band with many nonzeros it looks at one of every `step`
// nonzeros. That misses blocks with very few of them, which are far too empty to be multiplied as
// blocks.
void estimate_blocks(const CsrMatrix& matrix, const std::vector<std::int64_t>& rows,
                     MatrixFeatures& out) {
  constexpr std::int64_t kFew = 4;
  constexpr double kWorthFill = 0.15;
  constexpr std::int64_t kMostOfBand = 1 << 11, kOfBlock = 8;
  constexpr std::uint32_t kGolden = 0x9E3779B9;  // 2^32 / golden ratio
  constexpr std::int64_t kAhead = 16;            // entries whose cache lines are on their way
  // Entries of a band: where it is narrow, fewer meet every block that is not nearly empty.
  const std::int64_t most = std::min(kMostOfBand, (matrix.cols / kBlockColumns + 1) * kOfBlock);
  // For each block, the last sample that has a nonzero there.
  std::vector<std::int32_t> last_sample(matrix.cols / kBlockColumns + 1, 0);
  std::int32_t looks = 0;  // bands that were looked at, some of them twice
  double samples = 0, slots_per_nonzero = 0, distinct = 0, slots = 0;
  std::int64_t entries = 0, sampled = -1;
  const auto sample = [&](std::int64_t row) {
    const std::int64_t first = row / kBandRows * kBandRows;
    const std::int64_t last = std::min(first + kBandRows, matrix.rows);
    if (first != sampled) {
      const std::int64_t nnz = matrix.row_ptr[last] - matrix.row_ptr[first];
      const std::int64_t step = (nnz + most - 1) / most;
      std::int64_t blocks = 0;
      ++looks;
      // One entry of every `step`. Its place among them varies, so that it cannot keep in step with
      // the lengths of the rows.
      const auto entry = [&](std::int64_t i) {
        const std::uint32_t place = static_cast<std::uint32_t>(i) * kGolden;
        return matrix.col_idx.data() + matrix.row_ptr[first] + i * step +
               (std::int64_t{place} * step >> 32);
      };
      for (std::int64_t i = 0; i < nnz / step; ++i) {
        __builtin_prefetch(entry(std::min(i + kAhead, nnz / step - 1)));
        std::int32_t& seen_by = last_sample[*entry(i) / kBlockColumns];
        blocks += seen_by != looks ? 1 : 0;
        seen_by = looks;
      }
      distinct = static_cast<double>(blocks);
      slots = distinct * static_cast<double>(kBandRows * kBlockColumns) / static_cast<double>(nnz);
      entries += nnz / step;
      sampled = first;
    }
    samples += 1;
    out.band_blocks += distinct;
    slots_per_nonzero += slots;
  };
  for (std::int64_t i = 0; i < kFew; ++i) sample(rows[(2 * i + 1) * std::ssize(rows) / (2 * kFew)]);
  if (samples / slots_per_nonzero > kWorthFill)
    for (std::size_t i = 0; i < rows.size() && entries < kFew * most; ++i) sample(rows[i]);
  out.band_blocks /= samples;
  out.block_fill = std::min(1.0, samples / slots_per_nonzero);
}

// Stored zeros do not count, as in core/two_of_four.hpp. Reads no more rows once it knows that the
// matrix is not in 2:4.
double most_of_four(const CsrMatrix& matrix, const std::vector<std::int64_t>& sampled) {
  constexpr std::int64_t kMostEntries = 64;  // of a row
  for (const std::int64_t row : sampled) {
    __builtin_prefetch(matrix.col_idx.data() + matrix.row_ptr[row]);
    __builtin_prefetch(matrix.values.data() + matrix.row_ptr[row]);
  }
  int most = 1;
  for (const std::int64_t row : sampled) {
    if (most > kMostOfTwoFour) break;
    const std::int64_t begin = matrix.row_ptr[row];
    const std::int64_t end = begin + std::min(matrix.row_length(row), kMostEntries);
    most = std::max(most, most_in_a_group(matrix, begin, end, 4));
  }
  return most;
}

// The nonzeros of the longest row, as far as a few row pointers tell. One pointer in 64 is read,
// and all 64 only where these rows hold more than 1.5 times the usual number of nonzeros, and not
// about as many as the last 64 rows that were read. So a row of 96 times the mean length is found,
// unless its 64 rows hold about as many as those. A shorter row is found where it was sampled or
// has long neighbours.
double estimated_longest_row(const CsrMatrix& matrix, const std::vector<std::int64_t>& sampled) {
  constexpr std::int64_t kRows = 64;
  constexpr double kUnusual = 1.5;
  constexpr std::int64_t kAlike = 16;
  std::int64_t longest = 0;
  for (const std::int64_t row : sampled) longest = std::max(longest, matrix.row_length(row));
  const auto unusual = static_cast<std::int64_t>(kUnusual * static_cast<double>(matrix.nnz()) *
                                                 kRows / static_cast<double>(matrix.rows));
  std::int64_t like = 0;  // nonzeros of the last 64 rows that were read
  for (std::int64_t first = 0; first < matrix.rows; first += kRows) {
    const std::int64_t last = std::min(first + kRows, matrix.rows);
    const std::int64_t nnz = matrix.row_ptr[last] - matrix.row_ptr[first];
    const bool alike = nnz <= like && nnz > like - like / kAlike;
    if (nnz <= longest || nnz <= unusual || alike) continue;
    like = nnz;
    for (std::int64_t row = first; row < last; ++row)
      longest = std::max(longest, matrix.row_length(row));
  }
  return static_cast<double>(longest);
}

double estimated_used_columns(const CsrMatrix& matrix, const std::vector<std::int64_t>& sampled) {
  std::array<std::uint32_t, used_columns::kMarkWords> seen{}, again{};
  used_columns::Seen counts;
  for (int i = 0; i < std::ssize(sampled); ++i) {
    const std::int64_t row = sampled[i];
    if (i > 0 && sampled[i - 1] == row) continue;
    const auto [first, end] =
        used_columns::looked_at(matrix.row_ptr[row], matrix.row_ptr[row + 1], i);
    counts.entries += end - first;
    for (std::int64_t e = first; e < end; ++e) {
      const std::uint32_t mark = used_columns::mark_of(matrix.col_idx[e]);
      const std::uint32_t bit = 1U << mark % 32;
      again[mark / 32] |= seen[mark / 32] & bit;
      seen[mark / 32] |= bit;
    }
  }
  for (int word = 0; word < used_columns::kMarkWords; ++word) {
    counts.columns += std::popcount(seen[word]);
    counts.once += std::popcount(seen[word] & ~again[word]);
  }
  return used_columns::estimate(counts, static_cast<double>(matrix.nnz()),
                                static_cast<double>(matrix.cols));
}

struct Field {
  const char* name;
  double MatrixFeatures::*value;
};

constexpr std::array kFields = {
    Field{"rows", &MatrixFeatures::rows},
    Field{"cols", &MatrixFeatures::cols},
    Field{"nnz", &MatrixFeatures::nnz},
    Field{"mean_row", &MatrixFeatures::mean_row},
    Field{"cv_row", &MatrixFeatures::cv_row},
    Field{"max_row", &MatrixFeatures::max_row},
    Field{"empty_rows", &MatrixFeatures::empty_rows},
    Field{"gathered_8", &MatrixFeatures::gathered_8},
    Field{"gathered_16", &MatrixFeatures::gathered_16},
    Field{"gathered_32", &MatrixFeatures::gathered_32},
    Field{"stored_8", &MatrixFeatures::stored_8},
    Field{"stored_16", &MatrixFeatures::stored_16},
    Field{"stored_32", &MatrixFeatures::stored_32},
    Field{"band_blocks", &MatrixFeatures::band_blocks},
    Field{"block_fill", &MatrixFeatures::block_fill},
    Field{"most_of_four", &MatrixFeatures::most_of_four},
    Field{"used_cols", &MatrixFeatures::used_cols},
    Field{"row_overlap", &MatrixFeatures::row_overlap},
};

}  // namespace

MatrixFeatures features_of(const CsrMatrix& matrix) {
  MatrixFeatures out;
  out.rows = static_cast<double>(matrix.rows);
  out.cols = static_cast<double>(matrix.cols);
  out.nnz = static_cast<double>(matrix.nnz());
  if (matrix.nnz() == 0) return out;
  out.mean_row = out.nnz / out.rows;
  const std::vector<std::int64_t> sampled = rows_at_nonzeros(matrix);
  out.cv_row = row_length_variation(matrix, sampled);
  out.max_row = estimated_longest_row(matrix, sampled);
  out.empty_rows = share_of_empty_rows(matrix);
  out.used_cols = estimated_used_columns(matrix, sampled);
  set_windows(estimate_wcsr_at(matrix, sampled), out);
  if (may_fill_blocks(out)) estimate_blocks(matrix, sampled, out);
  else take_all_blocks(out);
  const bool may_be_two_four = out.mean_row >= kLeastOfTwoFour * out.cols;
  out.most_of_four = may_be_two_four ? most_of_four(matrix, sampled) : 4;
  return out;
}

bool may_fill_blocks(const MatrixFeatures& f) { return f.gathered_32 <= kMostGatheredOfBlocks; }

// As if every block had nonzeros.
void take_all_blocks(MatrixFeatures& f) {
  const double blocks = std::ceil(f.cols / kBlockColumns);
  const double fill = f.mean_row / (blocks * kBlockColumns);
  if (fill < kLeastBlockFill) return;
  f.band_blocks = blocks;
  f.block_fill = fill;
}

void set_windows(const WcsrEstimate& windows, MatrixFeatures& f) {
  std::tie(f.gathered_8, f.gathered_16, f.gathered_32) = std::tuple_cat(windows.gathered_share);
  std::tie(f.stored_8, f.stored_16, f.stored_32) = std::tuple_cat(windows.stored_share);
}

WcsrEstimate windows_of(const MatrixFeatures& f) {
  return {.gathered_share = {f.gathered_8, f.gathered_16, f.gathered_32},
          .stored_share = {f.stored_8, f.stored_16, f.stored_32}};
}

std::vector<std::pair<std::string, double>> named_features(const MatrixFeatures& features) {
  std::vector<std::pair<std::string, double>> out;
  out.reserve(kFields.size());
  for (const Field& field : kFields) out.emplace_back(field.name, features.*field.value);
  return out;
}

void set_feature(MatrixFeatures& features, const std::string& name, double value) {
  for (const Field& field : kFields)
    if (name == field.name) features.*field.value = value;
}

}  // namespace spmmbench
