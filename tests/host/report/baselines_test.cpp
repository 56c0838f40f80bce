// What speed-ups and break-even are over, and how the table names it.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "report/answer.hpp"
#include "report/baselines.hpp"
#include "report/table.hpp"
#include "report/table_columns.hpp"
#include "result_rows.hpp"

namespace spmmbench {
namespace {

TEST(Baselines, WithoutAGpuEigenIsWhatSpeedupsAreOverAndTheTableSaysSo) {
  std::vector<ResultRow> rows = {row_of("eigen_csr", "fp32", 60, true),
                                 row_of("eigen_csr", "fp16", 90, true),
                                 row_of("cpu_csr", "fp16", 30)};
  Baselines baselines;
  for (const ResultRow& row : rows) baselines.add(row);
  for (ResultRow& row : rows) baselines.fill(row);
  const ResultRow& mine = rows[2];
  EXPECT_DOUBLE_EQ(*mine.speedup.eigen_fp32, 2);
  EXPECT_DOUBLE_EQ(*mine.speedup.eigen, 3);
  EXPECT_FALSE(mine.speedup.cusparse_best);
  EXPECT_DOUBLE_EQ(*mine.speedup.eigen_fp32, 2);
  const std::string table = format_table(rows, {});
  EXPECT_NE(table.find("x Eig32 x Eigen"), std::string::npos) << table;
  EXPECT_EQ(table.find("x best"), std::string::npos);
  Summary summary;
  summary.add(rows, {});
  summary.add(rows, {});
  EXPECT_NE(summary.format({}).find("x Eigen"), std::string::npos);
}

TEST(Baselines, BesideCusparseEigenIsNoReferenceOfTheTable) {
  std::vector<ResultRow> rows = {row_of("cusparse_csr_default", "fp32", 40, true),
                                 row_of("cusparse_csr_alg2", "fp16", 20, true),
                                 row_of("eigen_csr", "fp16", 900, true),
                                 row_of("auto", "fp16", 10)};
  Baselines baselines;
  for (const ResultRow& row : rows) baselines.add(row);
  for (ResultRow& row : rows) baselines.fill(row);
  EXPECT_DOUBLE_EQ(*over_default(rows[3]), 4);
  EXPECT_DOUBLE_EQ(*over_best(rows[3]), 2);
  const std::string table = format_table(rows, {});
  EXPECT_NE(table.find("x dflt x best"), std::string::npos) << table;
  EXPECT_EQ(table.find("Eig32"), std::string::npos) << table;
  Summary summary;
  summary.add(rows, {});
  summary.add(rows, {});
  EXPECT_NE(summary.format({}).find("4.00    2.00"), std::string::npos) << summary.format({});
  EXPECT_EQ(summary.format({}).find("Eig"), std::string::npos);
}

TEST(Baselines, ARowOverAnotherReferenceThanItsTableHasNoSpeedupThere) {
  std::vector<ResultRow> rows = {row_of("cusparse_csr_alg2", "fp16", 20, true),
                                 row_of("eigen_csr", "bf16", 900, true),
                                 row_of("cpu_csr", "bf16", 450)};
  Baselines baselines;
  for (const ResultRow& row : rows) baselines.add(row);
  for (ResultRow& row : rows) baselines.fill(row);
  EXPECT_DOUBLE_EQ(*over_best(rows[2]), 2);
  const std::string table = format_table(rows, {});
  EXPECT_NE(table.find("x best"), std::string::npos) << table;
  EXPECT_EQ(table.find(" 2.00"), std::string::npos) << table;
}

TEST(Baselines, RowsOfTheCpuAreComparedAmongThemselves) {
  std::vector<ResultRow> rows = {row_of("cusparse_csr_default", "fp32", 40, true),
                                 row_of("cusparse_csr_alg2", "fp16", 20, true),
                                 row_of("auto", "fp16", 10), row_of("eigen_csr", "fp16", 9, true),
                                 row_of("cpu_csr", "fp16", 6)};
  for (int i = 0; i < 3; ++i) rows[i].device_index = 0;
  for (const std::int64_t calls : {0, 1000}) {
    Baselines baselines(calls);
    Answers answers;
    for (const ResultRow& row : rows) {
      baselines.add(row);
      answers.add(row);
    }
    for (ResultRow& row : rows) baselines.fill(row);
    EXPECT_EQ(rows[1].break_even_against, "auto") << "though cpu_csr takes less";
    EXPECT_FALSE(rows[2].speedup.eigen);
    EXPECT_EQ(rows[3].break_even_against, "cpu_csr");
    EXPECT_FALSE(rows[4].speedup.cusparse_best);
    EXPECT_DOUBLE_EQ(*rows[4].speedup.eigen, 1.5);
    ASSERT_EQ(answers.all().size(), 1U);
    EXPECT_EQ(answers.all()[0].steps[0].kernel, "auto");
    EXPECT_EQ(format_table(rows, {}).find(" 1.50"), std::string::npos) << "over Eigen";
  }
}

TEST(Baselines, WithCallsARowOverCusparseIsNotComparedWithEigen) {
  std::vector<ResultRow> rows = {row_of("cusparse_csr_default", "fp32", 40, true),
                                 row_of("eigen_csr", "bf16", 900, true),
                                 row_of("cpu_csr", "bf16", 450)};
  Baselines baselines(1000);
  for (const ResultRow& row : rows) baselines.add(row);
  for (ResultRow& row : rows) baselines.fill(row);
  EXPECT_FALSE(over_best(rows[2])) << "its table is over cuSPARSE";
}

TEST(Baselines, SpeedUpsNameTheirBaseline) {
  Baselines baselines;
  baselines.add(row_of("cusparse_csr_default", "fp32", 100, true));
  baselines.add(row_of("cusparse_csr_alg2", "fp32", 90, true));
  baselines.add(row_of("cusparse_csr_default", "fp16", 80, true));
  baselines.add(row_of("cusparse_csr_alg3", "fp16", 60, true));
  baselines.add(row_of("cusparse_csr_alg1", "fp16", 70, true));
  baselines.add(row_of("cusparse_of_a_user", "fp16", 30));
  baselines.add(row_of("cublas_dense", "fp16", 400, true));
  ResultRow mine = row_of("rsh", "fp16", 20);
  baselines.fill(mine);
  EXPECT_DOUBLE_EQ(*mine.speedup.cusparse_default_fp32, 5);
  EXPECT_DOUBLE_EQ(*mine.speedup.cusparse_best, 3);
  EXPECT_DOUBLE_EQ(*mine.speedup.cublas, 20);
  EXPECT_EQ(mine.speedup.best_is, "cusparse_csr_alg3");
}

TEST(Baselines, AreOfTheSameMatrixWidthLayoutAndTypes) {
  const ResultRow mine = row_of("rsh", "fp16", 20);
  std::vector<ResultRow> others(5, row_of("cusparse_csr_alg3", "fp16", 60, true));
  others[0].matrix.name = "other";
  others[1].n = 64;
  others[2].layout = "col";
  others[3].precision = "bf16";
  others[4].c_type = "fp16";
  for (const ResultRow& other : others) {
    const auto rows = filled({other, mine});
    EXPECT_FALSE(rows[1].speedup.cusparse_best);
    EXPECT_FALSE(rows[1].break_even_against);
  }
  ResultRow half = mine;
  half.c_type = "fp16";
  const auto rows = filled({row_of("cusparse_csr_default", "fp32", 100, true), others[4], half});
  EXPECT_DOUBLE_EQ(*rows[2].speedup.cusparse_default_fp32, 5) << "that of C in fp32";
  EXPECT_DOUBLE_EQ(*rows[2].speedup.cusparse_best, 3);
}

TEST(Baselines, OfTf32AreThoseOfFp32Too) {
  const auto best = [](const std::string& precision) {
    return *filled({row_of("cusparse_csr_default", precision, 100, true),
                    row_of("cusparse_csr_alg2", "fp32", 40, true), row_of("rsh", precision, 20)})[2]
                .speedup.cusparse_best;
  };
  EXPECT_DOUBLE_EQ(best("tf32"), 2);
  EXPECT_DOUBLE_EQ(best("fp16"), 5);
}

TEST(Baselines, ARowThatLosesItsTimeLosesItsSpeedUps) {
  Baselines baselines(100);
  baselines.add(row_of("cusparse_csr_default", "fp32", 100, true));
  baselines.add(row_of("csr_row_split", "fp32", 90));
  ResultRow mine = prepared(row_of("rsh", "fp32", 20), 50);
  baselines.fill(mine);
  ASSERT_TRUE(mine.break_even_calls && mine.break_even_against && mine.in_all_us);
  mine.hot.reset();
  baselines.fill(mine);
  EXPECT_FALSE(mine.speedup.cusparse_default_fp32);
  EXPECT_FALSE(mine.break_even_calls || mine.break_even_against || mine.in_all_us);
}

TEST(Baselines, AVectorsBestIsThatOfSpmvToo) {
  Baselines baselines;
  baselines.add(row_of("cusparse_csr_default", "fp16", 100, true));
  baselines.add(row_of("cusparse_spmv", "fp16", 80, true));
  baselines.add(row_of("cusparse_spmv_alg1", "fp16", 40, true));
  ResultRow mine = row_of("jagged_slices", "fp16", 20);
  baselines.fill(mine);
  EXPECT_DOUBLE_EQ(*mine.speedup.cusparse_best, 2);
}

TEST(Baselines, WrongRowsNeitherGiveNorGetASpeedUp) {
  Baselines baselines;
  ResultRow wrong = row_of("cusparse_csr_default", "fp32", 1, true);
  wrong.status = Status::wrong;
  baselines.add(wrong);
  ResultRow mine = row_of("rsh", "fp16", 20);
  baselines.fill(mine);
  EXPECT_FALSE(mine.speedup.cusparse_default_fp32);
  baselines.add(row_of("cusparse_csr_default", "fp32", 100, true));
  mine.status = Status::wrong;
  baselines.fill(mine);
  EXPECT_FALSE(mine.speedup.cusparse_default_fp32);
}

}  // namespace
}  // namespace spmmbench
