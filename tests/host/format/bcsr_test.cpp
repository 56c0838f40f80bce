#include "format/bcsr.hpp"

#include <gtest/gtest.h>
#include <omp.h>

#include "matrices.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

constexpr std::pair<int, int> kSizes[] = {{16, 16}, {32, 32},   {64, 64}, {128, 128},
                                          {64, 32}, {128, 256}, {1, 7}};

TEST(Bcsr, UnpackGivesBackTheMatrix) {
  for (const auto& [name, matrix] : testing::adversarial_matrices())
    for (const auto& [bm, bk] : kSizes) {
      const BcsrPattern pattern = BcsrPattern::build(matrix, bm, bk);
      if (pattern.stored() > 1 << 26) continue;
      EXPECT_TRUE(Bcsr::build(matrix, pattern).unpack() == matrix)
          << name << " " << bm << "x" << bk;
    }
}

TEST(Bcsr, EveryBlockHoldsAnEntryAndBlocksAscend) {
  for (const auto& [name, matrix] : testing::adversarial_matrices()) {
    const Bcsr bcsr = Bcsr::build(matrix, BcsrPattern::build(matrix, 16, 32));
    const BcsrPattern& p = bcsr.pattern;
    ASSERT_EQ(p.block_rows(), (matrix.rows + 15) / 16) << name;
    for (std::int64_t i = 0; i < p.block_rows(); ++i)
      for (std::int64_t b = p.block_row_ptr[i]; b < p.block_row_ptr[i + 1]; ++b) {
        EXPECT_TRUE(b == p.block_row_ptr[i] || p.block_col[b - 1] < p.block_col[b]) << name;
        const auto first = bcsr.values.begin() + b * 16 * 32;
        EXPECT_TRUE(std::any_of(first, first + 16 * 32, [](float v) { return v != 0; })) << name;
      }
  }
}

TEST(Bcsr, TheThreadCountDoesNotChangeTheResult) {
  const CsrMatrix matrix = testing::random_matrix(3000, 1700, 30, 1, 11);
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  const Bcsr one = Bcsr::build(matrix, BcsrPattern::build(matrix, 64, 64));
  omp_set_num_threads(7);
  const Bcsr seven = Bcsr::build(matrix, BcsrPattern::build(matrix, 64, 64));
  omp_set_num_threads(threads);
  EXPECT_EQ(one.pattern.block_row_ptr, seven.pattern.block_row_ptr);
  EXPECT_EQ(one.pattern.block_col, seven.pattern.block_col);
  EXPECT_EQ(one.values, seven.values);
}

TEST(Bcsr, StatsOfADenseMatrixCountItsPadding) {
  const CsrMatrix dense = testing::from_rows(
      40, std::vector<std::vector<std::int32_t>>(20, {0, 1, 2, 3, 4, 5, 6, 7, 8, 39}));
  const FormatStats stats = BcsrPattern::build(dense, 16, 16).stats(4);
  EXPECT_EQ(stats.name, "bcsr_16");
  EXPECT_EQ(stats.tiles, 4);
  EXPECT_EQ(stats.windows, 2);
  EXPECT_EQ(stats.stored, 4 * 256);
  EXPECT_EQ(stats.index_bytes, 3 * 8 + 4 * 4);
  EXPECT_EQ(stats.bytes, stats.index_bytes + 4 * 1024);
  EXPECT_DOUBLE_EQ(stats.fill, 200.0 / 1024);
  EXPECT_DOUBLE_EQ(stats.window_imbalance, 1);
  EXPECT_DOUBLE_EQ(stats.extra.at("block_density"), 4.0 / 6);
}

TEST(Bcsr, InspectOffersEachBlockSize) {
  const CsrMatrix matrix = testing::random_matrix(1000, 1000, 5, 0, 3);
  double fill = 1;
  for (const char* name : {"bcsr_16", "bcsr_32", "bcsr_64", "bcsr_128"}) {
    const FormatStats stats = Registry<Format>::instance().at(name).analyze(matrix, {});
    EXPECT_EQ(stats.name, name);
    EXPECT_LE(stats.fill, fill);
    fill = stats.fill;
  }
}

}  // namespace
}  // namespace spmmbench
