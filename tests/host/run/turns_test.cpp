// Kernels that are measured in turns.

#include "run/turns.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "result_rows.hpp"

namespace spmmbench {
namespace {

TEST(Turns, HaveEveryKernelInAnOrderThatTheSeedDecides) {
  std::set<std::vector<std::size_t>> orders;
  for (int turn = 0; turn < 20; ++turn) {
    std::vector<std::size_t> order = order_of_turn(5, 1, turn);
    EXPECT_EQ(order, order_of_turn(5, 1, turn));
    orders.insert(order);
    std::ranges::sort(order);
    EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
  }
  EXPECT_GT(orders.size(), 10U);
  EXPECT_NE(order_of_turn(50, 1, 0), order_of_turn(50, 2, 0));
}

TEST(Turns, DivideTheCapsOfSampling) {
  Protocol whole;
  const Protocol turn = of_turn(whole);
  EXPECT_EQ(turn.limits.max_samples * kTurns, whole.limits.max_samples);
  EXPECT_DOUBLE_EQ(turn.limits.max_seconds * kTurns, whole.limits.max_seconds);
  whole.limits.max_samples = whole.limits.min_samples;
  EXPECT_EQ(of_turn(whole).limits.max_samples, whole.limits.min_samples);
}

TEST(Turns, GiveOneRowOfAllSamples) {
  std::vector<ResultRow> turns = {prepared(row_of("k", "fp16", 10), 3),
                                  prepared(row_of("k", "fp16", 30), 2)};
  turns[0].verify->error_over_bound = 0.5;
  turns[0].metrics = {{"preemptions_per_s", 7}, {"throttle_reasons", 4}, {"throttled_repeats", 1}};
  turns[1].metrics = {{"preemptions_per_s", 3}, {"throttled_repeats", 2}};
  const ResultRow row = join_turns(turns);
  EXPECT_EQ(row.hot->samples_us, (std::vector<double>{10, 11, 9, 30, 31, 29}));
  EXPECT_DOUBLE_EQ(row.hot->median_us, 20);
  EXPECT_EQ(row.cold->n(), 2);
  EXPECT_DOUBLE_EQ(*row.of_bound, 1.0 / 20);
  EXPECT_EQ(row.stages_ms.at("build"), 2) << "of the turn that prepared in the least time";
  EXPECT_EQ(row.verify->error_over_bound, 0.5);
  EXPECT_EQ(row.metrics.at("preemptions_per_s"), 7);
  EXPECT_EQ(row.metrics.at("throttle_reasons"), 4);
  EXPECT_EQ(row.metrics.at("throttled_repeats"), 3) << "of all turns";
}

TEST(Turns, AreNotOkWhereOneIsNot) {
  std::vector<ResultRow> turns(3, row_of("k", "fp16", 10));
  turns[1].status = Status::wrong;
  turns[1].reason = "error";
  EXPECT_EQ(join_turns(turns).status, Status::wrong);
  EXPECT_EQ(join_turns(turns).reason, "error");
}

}  // namespace
}  // namespace spmmbench
