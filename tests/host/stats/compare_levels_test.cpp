// Runs that take one of a few levels as a whole: which changes they explain, and which stand out.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "stats/compare.hpp"
#include "stats/relabel.hpp"

namespace spmmbench {
namespace {

// Seven runs of each side with a scatter of a tenth of a percent; those named take a level that is
// higher by `step`.
Shift of_levels(const std::set<int>& high_base, const std::set<int>& high_fresh,
                double step = 0.04) {
  RunLevels levels;
  for (int run = 0; run < 7; ++run) {
    const double scatter = 0.0005 * (run % 3);
    levels.base.push_back(scatter + (high_base.contains(run) ? step : 0));
    levels.fresh.push_back(scatter + (high_fresh.contains(run) ? step : 0));
  }
  return shift_of_runs(levels, 0.02);
}

TEST(Compare, ACaseMayTakeOneLevelPerSideByChanceWhereOthersTakeTwo) {
  const std::set<int> all = {0, 1, 2, 3, 4, 5, 6};
  const auto first_of = [&](int with_two_levels) {
    std::vector<Shift> shifts(400, of_levels({}, {}));
    shifts[0] = of_levels({}, all);
    for (int i = 1; i <= with_two_levels; ++i)
      shifts[i] = of_levels({0, 2, 5}, {1, 3, 4, 6}, 0.041);
    return decide(shifts, 0.005, 0.05, Family::cases)[0];
  };
  EXPECT_EQ(first_of(0).change, Change::slower);
  EXPECT_EQ(first_of(10).change, Change::slower) << "10 / 3432 are expected by chance";
  EXPECT_NE(first_of(40).change, Change::slower) << "40 / 3432 are expected, more than 0.5 %";
  EXPECT_GT(first_of(40).resolution, first_of(0).resolution);
}

TEST(Compare, ManyCasesThatChangedAreMoreThanTwoLevelsExplain) {
  std::vector<Shift> shifts(400, of_levels({}, {}));
  for (int i = 0; i < 100; ++i) shifts[i] = of_levels({}, {0, 1, 2, 3, 4, 5, 6});
  for (int i = 100; i < 140; ++i) shifts[i] = of_levels({0, 2, 5}, {1, 3, 4, 6}, 0.041);
  const std::vector<Decision> decisions = decide(shifts, 0.005, 0.05, Family::cases);
  EXPECT_EQ(std::count_if(decisions.begin(), decisions.end(),
                          [](const Decision& one) { return one.change == Change::slower; }),
            100);
}

// The decision on a case whose runs all take the other level, among 40 with runs of either level
// and others without, where every case moves by `together` too.
Decision among_levels(const Shift& first, double together) {
  std::vector<Shift> shifts(400, of_levels({}, {}));
  shifts[0] = first;
  for (int i = 1; i <= 40; ++i) shifts[i] = of_levels({0, 2, 5}, {1, 3, 4, 6}, 0.041);
  for (Shift& shift : shifts) {
    RunLevels moved = shift.levels;
    for (double& level : moved.fresh) level += together;
    shift = shift_of_runs(moved, 0.02);
  }
  return decide(shifts, 0.005, 0.05, Family::cases)[0];
}

TEST(Compare, WhatAllCasesMoveTogetherIsNoLevelOfACase) {
  const std::set<int> all = {0, 1, 2, 3, 4, 5, 6};
  const Shift still = of_levels({}, {});
  EXPECT_NEAR(among_levels(still, 0.01).resolution, among_levels(still, 0).resolution, 1e-9);
  EXPECT_NE(among_levels(of_levels({}, all), 0.015).change, Change::slower);
  EXPECT_NE(among_levels(of_levels(all, {}), -0.015).change, Change::faster);
  EXPECT_EQ(among_levels(of_levels({}, all, 0.1), 0.015).change, Change::slower);
}

TEST(Compare, ALargerChangeStandsOutWhereASmallerOneDoesNot) {
  const std::set<int> all = {0, 1, 2, 3, 4, 5, 6};
  std::vector<Shift> shifts(400, of_levels({}, {}));
  shifts[0] = of_levels({}, all);
  shifts[1] = of_levels({}, all, 0.1);
  for (int i = 2; i < 42; ++i) shifts[i] = of_levels({0, 2, 5}, {1, 3, 4, 6}, 0.041);
  const std::vector<Decision> decisions = decide(shifts, 0.005, 0.05, Family::cases);
  EXPECT_NE(decisions[0].change, Change::slower);
  EXPECT_EQ(decisions[1].change, Change::slower);
}

// Nine runs of BASE and three of NEW; so many of each, the last ones, take the high level.
Shift of_nine_and_three(int high_base, int high_fresh) {
  RunLevels levels;
  for (int run = 0; run < 9; ++run)
    levels.base.push_back(0.0005 * (run % 3) + (run >= 9 - high_base ? 0.04 : 0));
  for (int run = 0; run < 3; ++run)
    levels.fresh.push_back(0.0005 * run + (run >= 3 - high_fresh ? 0.04 : 0));
  return shift_of_runs(levels, 0.02);
}

TEST(Compare, RunsThatSeldomTakeTheHighLevelExplainASlowSideAndNoFastOne) {
  std::vector<Shift> shifts(400, of_nine_and_three(0, 0));
  shifts[0] = of_nine_and_three(0, 3);
  shifts[1] = of_nine_and_three(9, 0);
  for (int i = 2; i < 42; ++i) shifts[i] = of_nine_and_three(2, 1);
  const std::vector<Decision> decisions = decide(shifts, 0.005, 0.05, Family::cases);
  EXPECT_NE(decisions[0].change, Change::slower) << "40 / 220 are expected by chance";
  EXPECT_EQ(decisions[1].change, Change::faster);
}

TEST(Compare, TheChanceOfOneLevelPerSideLeavesLessForOthers) {
  std::vector<Shift> shifts(400, of_nine_and_three(0, 0));
  const double alone = decide(shifts, 0.005, 0.05, Family::cases)[0].resolution;
  shifts[1] = of_nine_and_three(2, 1);
  EXPECT_GT(decide(shifts, 0.005, 0.05, Family::cases)[0].resolution, alone)
      << "1 / 220 + 0.0012 is more than 0.005, and 1 / 220 is not";
}

TEST(Compare, TheChancesOfManyCasesAddUp) {
  std::vector<Shift> shifts;
  for (int i = 0; i < 10; ++i)
    shifts.push_back(shift_of_runs({{0, 0.001, 0.002}, {0.1, 0.101, 0.102}, {}}, 0.02));
  for (const Decision& one : decide(shifts, 0.005, 0.05, Family::cases))
    EXPECT_NE(one.change, Change::slower) << "each of them is one comparison in 64 by chance";
}

// Decides on one case whose runs of NEW take so many times as long as those of BASE.
Decision of_few_runs(double slowdown, int runs, bool on_cpu) {
  RunLevels levels;
  for (int run = 0; run < runs; ++run) {
    levels.base.push_back(0.001 * (run % 3));
    levels.fresh.push_back(levels.base.back() + std::log(slowdown));
  }
  Shift shift = shift_of_runs(levels, 0.02);
  shift.on_cpu = on_cpu;
  return decide(std::vector{shift}, 0.005, 0.05, Family::cases)[0];
}

TEST(Compare, OfThreeRunsOnlyWhatIsLargerThanAnyLevelIsSlower) {
  EXPECT_EQ(of_few_runs(1.1, 3, false).change, Change::not_able_to_tell)
      << "one comparison in 64 by chance";
  EXPECT_EQ(of_few_runs(1.5, 3, false).change, Change::slower);
}

TEST(Compare, OnACpuNoChangeIsLargerThanAnyLevel) {
  for (const int runs : {2, 3})
    for (const double slowdown : {1.5, 20.0, 0.05}) {
      const Decision decision = of_few_runs(slowdown, runs, true);
      EXPECT_EQ(decision.change, Change::not_able_to_tell) << runs << " runs, x " << slowdown;
      EXPECT_TRUE(std::isinf(decision.resolution));
    }
  EXPECT_EQ(of_few_runs(1.1, 7, true).change, Change::slower) << "one level per side is rare";
}

TEST(Compare, OnACpuAsManyRunsAreNeededAsMakeOneLevelPerSideRare) {
  Shift shift = shift_of_runs({{0, 0.001}, {0, 0.001}, {}}, 0.02);
  EXPECT_EQ(runs_needed(shift, 0.005, 1, 0.5, Family::cases), 2);
  shift.on_cpu = true;
  EXPECT_EQ(runs_needed(shift, 0.005, 1, 0.5, Family::cases), 4) << "2^-8 is below 0.005";
}

TEST(Relabel, FindsTheOneDivisionThatPutsEachLevelOnOneSide) {
  const std::vector<double> base = {0, 0.04, 0, 0.04, 0, 0.04, 0},
                            fresh = {0.04, 0, 0.04, 0, 0.04, 0, 0.04};
  const Relabelled ways = relabel(base, fresh, {0.02, 0.001});
  EXPECT_DOUBLE_EQ(ways.weight, 1.0 / 3432);
  const double clean = (0.04 - std::log(1.02)) / (0.001 * std::sqrt(2.0 / 7));
  EXPECT_NEAR(*std::max_element(ways.slower.begin(), ways.slower.end()), clean, 1e-9);
  EXPECT_EQ(std::count_if(ways.slower.begin(), ways.slower.end(),
                          [&](double t) { return t > clean / 2; }),
            1);
  EXPECT_EQ(ways.slower.size(), ways.faster.size()) << "sides of one size mirror each other";
}

TEST(Relabel, TheDeviationHasTheFreedomOfBothSides) {
  const std::vector<double> base = {0, 0.01, 0.02}, fresh = {0.2, 0.21, 0.22};
  const Relabelled ways = relabel(base, fresh, {0.02, 0.001});
  EXPECT_NEAR(*std::max_element(ways.slower.begin(), ways.slower.end()),
              (0.2 - std::log(1.02)) / (0.01 * std::sqrt(2.0 / 3)), 1e-9);
}

TEST(Relabel, RunsWithoutAnyScatterHaveTheLeastDeviation) {
  for (int step = 3; step < 20; ++step) {
    const std::vector<double> base(7, 0.1), fresh(7, 0.1 + 0.01 * step);
    const Relabelled ways = relabel(base, fresh, {0.02, 0.001});
    EXPECT_NEAR(*std::max_element(ways.slower.begin(), ways.slower.end()),
                (0.01 * step - std::log(1.02)) / (0.001 * std::sqrt(2.0 / 7)), 1e-6);
  }
}

TEST(Relabel, SidesOfTwoSizesDoNotMirrorEachOther) {
  std::vector<double> base = {0, 0, 0.04}, fresh(9, 0);
  fresh[0] = fresh[1] = 0.04;
  const Relabelled ways = relabel(base, fresh, {0.02, 0.001});
  EXPECT_TRUE(ways.slower.empty()) << "no more than three of nine";
  EXPECT_EQ(ways.faster.size(), 1U) << "all three of BASE";
}

TEST(Relabel, OneRunOfEachSideCannotBeDivided) {
  EXPECT_EQ(relabel(std::vector{0.0}, std::vector{1.0}, {0.02, 0.001}).weight, 0);
}

TEST(Relabel, OneLevelPerSideIsLikeliestWhereRunsTakeThemAsOftenAsTheSidesHaveRuns) {
  EXPECT_DOUBLE_EQ(chance_of_one_level_per_side(7, 7), std::pow(0.5, 14));
  EXPECT_DOUBLE_EQ(chance_of_one_level_per_side(1, 3), 0.25 * std::pow(0.75, 3));
}

}  // namespace
}  // namespace spmmbench
