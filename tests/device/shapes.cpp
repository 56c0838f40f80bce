#include "shapes.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <functional>

#include "spmmbench/random.hpp"

namespace spmmbench::test {
namespace {

constexpr std::uint64_t kShapeSeed = 20260;

// Keeps each position with probability density(row, col), decided by a hash of the position.
CsrMatrix sample(std::int64_t rows, std::int64_t cols,
                 const std::function<double(std::int64_t, std::int64_t)>& density) {
  CsrMatrix m{rows, cols, {0}, {}, {}};
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t col = 0; col < cols; ++col) {
      const double draw = 0.5 + 0.5 * uniform_at(kShapeSeed + 1, row, col);
      if (draw >= density(row, col)) continue;
      m.col_idx.push_back(static_cast<std::int32_t>(col));
      m.values.push_back(uniform_at(kShapeSeed, row, col));
    }
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  return m;
}

// Two of every four neighbours in a row.
double two_of_four(std::int64_t row, std::int64_t col) {
  constexpr std::array<unsigned, 6> kPairs = {0b0011, 0b0101, 0b1001, 0b0110, 0b1010, 0b1100};
  return kPairs[hash_position(kShapeSeed + 2, row, col / 4) % kPairs.size()] >> (col % 4) & 1U;
}

// `length(row)` nonzeros at hashed columns, fewer where two fall together: for matrices too large
// to visit every position.
CsrMatrix scatter(std::int64_t rows, std::int64_t cols,
                  const std::function<std::int64_t(std::int64_t)>& length) {
  CsrMatrix m{rows, cols, {0}, {}, {}};
  std::vector<std::int32_t> row_cols;
  for (std::int64_t row = 0; row < rows; ++row) {
    row_cols.clear();
    for (std::int64_t i = 0; i < length(row); ++i)
      row_cols.push_back(static_cast<std::int32_t>(hash_position(kShapeSeed, row, i) %
                                                   static_cast<std::uint64_t>(cols)));
    std::sort(row_cols.begin(), row_cols.end());
    row_cols.erase(std::unique(row_cols.begin(), row_cols.end()), row_cols.end());
    for (const std::int32_t col : row_cols) {
      m.col_idx.push_back(col);
      m.values.push_back(uniform_at(kShapeSeed, row, col));
    }
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  return m;
}

std::vector<NamedShape> make_shapes() {
  using Index = std::int64_t;
  std::vector<NamedShape> shapes{
      {"tail_rows", sample(67, 45, [](Index, Index) { return 0.2; })},
      {"whole_tiles", sample(128, 128, [](Index, Index) { return 0.1; })},
      {"dense", sample(40, 70, [](Index, Index) { return 1.0; })},
      {"empty_rows", sample(203, 90, [](Index r, Index) { return r % 3 == 0 ? 0.15 : 0.0; })},
      {"mostly_empty_rows",
       scatter(20003, 9001, [](Index r) { return r % 5 < 3 ? 0 : 1 + r % 7; })},
      {"empty_windows",
       sample(300, 64, [](Index r, Index) { return r < 5 || r > 260 ? 0.2 : 0.0; })},
      {"no_nonzeros", sample(100, 50, [](Index, Index) { return 0.0; })},
      {"one_row_holds_everything",
       sample(33, 5000, [](Index r, Index) { return r == 17 ? 1.0 : 0.0; })},
      {"one_column_holds_everything",
       sample(1000, 60, [](Index, Index c) { return c == 31 ? 1.0 : 0.0; })},
      {"long_row_among_short",
       scatter(2001, 9001, [](Index r) { return r == 1234 ? Index{20000} : r % 5; })},
      {"one_inner_column", sample(77, 1, [](Index, Index) { return 0.7; })},
      {"one_row", sample(1, 300, [](Index, Index) { return 0.5; })},
      {"single_entry", sample(1, 1, [](Index, Index) { return 1.0; })},
      {"blocks_64",
       sample(200, 330, [](Index r, Index c) { return (r / 64 + c / 64) % 3 == 0 ? 1.0 : 0.0; })},
      {"aligned_blocks", sample(256, 320,
                                [](Index r, Index c) {
                                  const Index block_row = r / 64;
                                  return block_row != 2 && (block_row * c / 64) % 3 == 0 ? 0.9
                                                                                         : 0.0;
                                })},
      {"two_of_four", sample(160, 288, two_of_four)},
      {"two_of_four_ragged", sample(333, 1100, two_of_four)},
      {"two_of_four_small", sample(70, 45, two_of_four)},
      // Few rows, so that kernels which divide k among blocks have many parts of each.
      {"two_of_four_flat",
       sample(17, 5000, [](Index r, Index c) { return c / 4 % 8 == 0 ? two_of_four(r, c) : 0.0; })},
      // Farther apart than a byte can say in steps of eight columns, in more than two chunks of
      // 4096.
      {"far_columns", sample(35, 9000, [](Index r, Index c) { return c % 2500 == r ? 1.0 : 0.0; })},
      {"power_law", scatter(3000, 3000, [](Index r) { return 2 + 3000 / (r + 1); })},
      {"many_short_rows", scatter(20011, 15013, [](Index r) { return r % 17; })},
  };
  leave_out_large(shapes);
  return shapes;
}

}  // namespace

const std::vector<NamedShape>& all_shapes() {
  static const std::vector<NamedShape> shapes = make_shapes();
  return shapes;
}

void leave_out_large(std::vector<NamedShape>& shapes) {
  if (const char* limit = std::getenv("SPMMBENCH_TEST_MAX_NNZ"))
    std::erase_if(shapes, [&](const NamedShape& s) { return s.matrix.nnz() > std::atoll(limit); });
}

}  // namespace spmmbench::test
