// What preparation costs: break-even, the total of so many calls, and the answer.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "report/answer.hpp"
#include "report/table.hpp"
#include "result_rows.hpp"

namespace spmmbench {
namespace {

TEST(BreakEven, IsAgainstTheRowThatIsDoneFirstWhenCalledOnce) {
  const auto rows =
      filled({prepared(row_of("cusparse_csr_default", "fp16", 80, true), 2),
              prepared(row_of("csr_row_split", "fp16", 70), 1),
              prepared(row_of("rsh", "fp16", 20), 11), prepared(row_of("slow", "fp16", 90), 11)});
  EXPECT_EQ(rows[2].break_even_against, "csr_row_split");
  EXPECT_DOUBLE_EQ(*rows[2].break_even_calls, 10 / 0.05) << "10 ms more, 50 us saved per call";
  EXPECT_FALSE(rows[1].break_even_calls) << "it is that row";
  EXPECT_FALSE(rows[1].break_even_against);
  EXPECT_TRUE(std::isinf(*rows[0].break_even_calls)) << "nothing is saved";
  EXPECT_TRUE(std::isinf(*rows[3].break_even_calls));
}

TEST(BreakEven, OfAnOrderIsAgainstTheSameKernelWithoutIt) {
  ResultRow ordered = prepared(row_of("rsh", "fp16", 20), 31);
  ordered.reorder = "rabbit";
  ResultRow alone = prepared(row_of("async_wcsr", "fp16", 25), 31);
  alone.reorder = "rabbit";
  const auto rows = filled({prepared(row_of("csr_row_split", "fp16", 70), 1),
                            prepared(row_of("rsh", "fp16", 30), 11), ordered, alone});
  EXPECT_EQ(rows[2].break_even_against, "rsh");
  EXPECT_DOUBLE_EQ(*rows[2].break_even_calls, 20 / 0.01);
  EXPECT_EQ(rows[3].break_even_against, "csr_row_split") << "async_wcsr was not run without it";
  const auto sooner = filled({prepared(row_of("rsh", "fp16", 30), 40), ordered});
  EXPECT_EQ(sooner[1].break_even_calls, 0) << "it is prepared in less time, too";
  EXPECT_EQ(label_of(ordered), "rsh [rabbit]");
  const auto first = filled({ordered, prepared(row_of("csr_row_split", "fp16", 15), 90)});
  EXPECT_EQ(first[1].break_even_against, "rsh [rabbit]");
  const std::string table = format_table(rows, {});
  EXPECT_NE(table.find("pays at: calls until it takes less time in all than csr_row_split or, "
                       "of a row with an order, the same kernel without it"),
            std::string::npos)
      << table;
}

TEST(InAll, PreparationDecidesTheStarAndTheSpeedUpOfFewCalls) {
  const std::vector<ResultRow> rows = {
      prepared(row_of("cusparse_csr_default", "fp16", 80, true), 2),
      prepared(row_of("rsh", "fp16", 20), 11)};
  const auto few = filled(rows, 100), many = filled(rows, 1000), none = filled(rows);
  EXPECT_DOUBLE_EQ(*few[0].in_all_us, 100);  // 2000 us / 100 + 80 us
  EXPECT_DOUBLE_EQ(*few[1].in_all_us, 130);
  EXPECT_DOUBLE_EQ(*few[1].speedup.best_in_all, 100.0 / 130);
  EXPECT_DOUBLE_EQ(*few[1].speedup.cusparse_best, 4) << "of a call alone";
  EXPECT_DOUBLE_EQ(*many[1].speedup.best_in_all, 82.0 / 31);
  EXPECT_FALSE(none[1].in_all_us);
  EXPECT_FALSE(none[1].speedup.best_in_all);
  const auto star = [](const std::vector<ResultRow>& rows, std::int64_t calls) {
    const std::string table = format_table(rows, {.calls = calls});
    return table.substr(table.find("* ") + 2, 3);
  };
  EXPECT_EQ(star(few, 100), "cus");
  EXPECT_EQ(star(many, 1000), "rsh");
  EXPECT_EQ(star(none, 0), "rsh");
  EXPECT_NE(format_table(few, {.calls = 100}).find("preparation counted for 100 calls"),
            std::string::npos);
  EXPECT_EQ(format_table(none, {}).find("in all us"), std::string::npos);
}

TEST(InAll, WithoutCusparseEigenIsWhatPreparationIsCountedAgainst) {
  const auto rows = filled({prepared(row_of("eigen_csr", "fp32", 80, true), 2),
                            prepared(row_of("cpu_csr", "fp32", 20), 11)},
                           100);
  EXPECT_DOUBLE_EQ(*rows[1].speedup.best_in_all, 100.0 / 130);
}

TEST(Answer, IsTheLowerEnvelopeOfPreparationPlusCallsTimesTime) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> count(1, 12), ms(0, 40), us(1, 60);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<Cost> costs(count(random));
    for (Cost& cost : costs) cost = {0.25 * ms(random), 5.0 * us(random)};
    const auto steps = lower_envelope(costs);
    ASSERT_FALSE(steps.empty());
    EXPECT_EQ(steps.front().first, 1);
    std::size_t step = 0;
    for (std::int64_t calls = 1; calls < 3000; ++calls) {
      while (step + 1 < steps.size() && steps[step + 1].first <= calls) ++step;
      const auto total = [&](const Cost& cost) {
        return cost.total_us(static_cast<double>(calls));
      };
      const auto best = std::min_element(costs.begin(), costs.end(),
                                         [&](auto& a, auto& b) { return total(a) < total(b); });
      ASSERT_LE(total(costs[steps[step].second]), total(*best) * (1 + 1e-12)) << calls;
    }
    for (std::size_t i = 1; i < steps.size(); ++i)
      EXPECT_LT(costs[steps[i].second].us, costs[steps[i - 1].second].us);
  }
}

TEST(Answer, WhatIsFasterByLessThanNoiseTakesOverFromNone) {
  EXPECT_EQ(lower_envelope({{1, 100}, {2, 99.5}}).size(), 1U);
  EXPECT_EQ(lower_envelope({{1, 100}, {2, 98.5}}).size(), 2U);
  using Steps = std::vector<std::pair<std::int64_t, std::size_t>>;
  EXPECT_EQ(lower_envelope({{1, 100}, {1, 100}}), (Steps{{1, 0}})) << "a tie: the first";
  EXPECT_EQ(lower_envelope({}), Steps{});
  EXPECT_EQ(lower_envelope({{1, 100}, {2, 50}, {2, 50}, {2, 60}}), (Steps{{1, 0}, {20, 1}}));
  EXPECT_EQ(lower_envelope({{1, 100}, {1.05, 50}}), (Steps{{1, 1}})) << "a tie of one call";
}

TEST(Answer, OfTwoThatTakeOverAtOneNumberOfCallsTheOneDoneFirstComesFirst) {
  using Steps = std::vector<std::pair<std::int64_t, std::size_t>>;
  EXPECT_EQ(lower_envelope({{1, 100}, {1.96, 50}, {2.58, 20}}), (Steps{{1, 0}, {20, 1}, {21, 2}}));
  EXPECT_EQ(lower_envelope({{1, 100}, {2, 50}, {2.5, 25}}), (Steps{{1, 0}, {20, 1}, {21, 2}}))
      << "and of a tie the first";
}

TEST(Answer, HasOnlyRowsThatAreVerifiedComparableAndOfTheGroup) {
  ResultRow wrong = row_of("wrong", "fp16", 1);
  wrong.status = Status::wrong;
  ResultRow binary = row_of("binary", "fp16", 1);
  binary.binary = true;
  std::vector<ResultRow> others(5, row_of("other", "fp16", 1));
  others[0].n = 64;
  others[1].layout = "col";
  others[2].precision = "tf32";
  others[3].c_type = "fp16";
  others[4].matrix.name = "other";
  Answers answers;
  answers.add(wrong);
  answers.add(binary);
  EXPECT_TRUE(answers.all().empty()) << "no row that counts";
  answers.add(row_of("rsh", "fp16", 20));
  for (const ResultRow& row : others) answers.add(row);
  answers.add(row_of("cusparse_csr_default", "fp32", 10, true));  // there to divide by
  answers.add(row_of("cublas_dense", "fp16", 400, true));
  const std::vector<Answer> all = answers.all();
  ASSERT_EQ(all.size(), 6U);
  ASSERT_EQ(all[0].steps.size(), 1U);
  EXPECT_EQ(all[0].steps[0].kernel, "rsh");
  EXPECT_EQ(to_string(all[0]), "1 call: rsh, 3020 us in all, then 20 us a call, 0.05 of the bound");
}

TEST(Answer, OfBaselinesAloneIsGivenWhereThereIsNothingElse) {
  Answers answers;
  answers.add(row_of("cusparse_csr_default", "fp32", 10, true));
  EXPECT_EQ(answers.all().size(), 1U);
  ResultRow narrow = row_of("rsh", "fp16", 20), columns = narrow;
  narrow.n = 64;
  columns.layout = "col";
  answers.add(narrow);
  answers.add(columns);
  EXPECT_EQ(answers.all().size(), 3U) << "another N or layout has none";
}

TEST(Answer, OfBaselinesAloneIsLeftOutInFp32WhichWasOnlyThereToDivideBy) {
  Answers answers;
  answers.add(row_of("cusparse_csr_default", "fp32", 10, true));
  answers.add(row_of("cusparse_csr_alg2", "bf16", 10, true));
  answers.add(row_of("rsh", "fp16", 20));
  ASSERT_EQ(answers.all().size(), 2U);
  EXPECT_EQ(answers.all()[0].precision, "bf16");
}

TEST(Answer, NamesTheRowOrderOfItsSteps) {
  ResultRow ordered = prepared(row_of("rsh", "fp16", 20), 31);
  ordered.reorder = "rabbit";
  Answers answers;
  answers.add(prepared(row_of("rsh", "fp16", 70), 1));
  answers.add(ordered);
  EXPECT_EQ(to_string(answers.all().at(0)),
            "1 call: rsh, 1070 us in all \u00b7 from 600 calls: rsh [rabbit], 20 us a call, 0.05 "
            "of the bound");
  EXPECT_TRUE(to_string(answers.all()[0], 600).starts_with("600 calls: rsh [rabbit], 43 ms in all"))
      << to_string(answers.all()[0], 600);
}

TEST(Answer, RowsWithoutAPositiveTimeTakeNoPart) {
  for (const double us : {-1.0, 0.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    ResultRow row = row_of("k", "fp16", 10);
    row.hot->median_us = us;
    EXPECT_FALSE(cost_of(row)) << us;
    Answers answers;
    answers.add(row);
    EXPECT_TRUE(answers.all().empty()) << us;
  }
}

}  // namespace
}  // namespace spmmbench
