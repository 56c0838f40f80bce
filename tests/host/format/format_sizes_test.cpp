// Sizes of the compared formats on matrices small enough to count by hand.

#include <gtest/gtest.h>

#include "matrices.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

FormatStats analyze(const char* format, const CsrMatrix& matrix) {
  return Registry<Format>::instance().at(format).analyze(matrix, {});
}

TEST(FormatSizes, AreTheOnesOfTheirDefinitions) {
  // 17 rows: two windows of 16 rows, three of 8. Nine columns in the first rows: two blocks.
  std::vector<std::vector<std::int32_t>> rows(17);
  rows[0] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  rows[16] = {3};
  const CsrMatrix matrix = testing::from_rows(20, rows);
  const std::int64_t nnz = 10;
  EXPECT_EQ(analyze("coo", matrix).index_bytes, 8 * nnz);
  EXPECT_EQ(analyze("csr", matrix).index_bytes, 4 * nnz + 4 * 18);
  EXPECT_EQ(analyze("me_tcf", matrix).index_bytes, 4 * 3 + 4 * 4 + nnz + 32 * 3);
  EXPECT_EQ(analyze("me_tcf_balanced", matrix).index_bytes, 4 * 3 + 4 * 4 + nnz + 32 * 3 + 4 * 3);
  EXPECT_EQ(analyze("bit_tcf", matrix).index_bytes, 4 * 4 + 4 * 4 + 40 * 3);
  EXPECT_EQ(analyze("bit_tcf_balanced", matrix).index_bytes,
            4 * 4 + 4 * 4 + 40 * 3 + 4 * 3 + 4 * 2);
}

TEST(FormatSizes, EveryFormatAnalyzesEveryShape) {
  for (const Format* format : Registry<Format>::instance().sorted())
    for (const auto& [name, matrix] : testing::adversarial_matrices()) {
      const FormatStats stats = format->analyze(matrix, {});
      EXPECT_EQ(stats.name, format->name());
      EXPECT_GE(stats.bytes, stats.index_bytes) << format->name() << " " << name;
      EXPECT_GE(stats.stored, matrix.nnz()) << format->name() << " " << name;
      EXPECT_GE(stats.fill, 0) << format->name() << " " << name;
      EXPECT_LE(stats.fill, 1) << format->name() << " " << name;
    }
}

}  // namespace
}  // namespace spmmbench
