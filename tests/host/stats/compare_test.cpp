// The tests and the verdicts, on times drawn with a fixed seed: noise within a run that depends on
// the sample before, and runs that differ as a whole.

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "stats/compare.hpp"
#include "stats/multiple.hpp"
#include "stats/rank_test.hpp"
#include "stats/students_t.hpp"

namespace spmmbench {
namespace {

using Times = std::vector<double>;

struct Noise {
  double run = 0;          // standard deviation of a run's level, relative
  double sample = 0.005;   // of a sample around it
  double correlation = 0;  // of successive samples
};

class Measured {
 public:
  explicit Measured(unsigned seed) : random_(seed) {}

  std::vector<Times> runs(int count, int samples, double level_us, const Noise& noise) {
    std::vector<Times> runs(count);
    for (Times& times : runs) {
      const double level = level_us * std::exp(noise.run * normal_(random_));
      double state = normal_(random_);
      for (int i = 0; i < samples; ++i) {
        state = noise.correlation * state +
                std::sqrt(1 - noise.correlation * noise.correlation) * normal_(random_);
        times.push_back(level * std::exp(noise.sample * state));
      }
    }
    return runs;
  }
  Times run(int samples, double level_us, const Noise& noise) {
    return runs(1, samples, level_us, noise).front();
  }

 private:
  std::mt19937 random_;
  std::normal_distribution<double> normal_;
};

TEST(RankTest, TheTailOfSmallSamplesIsExact) {
  const Times base = {1, 2, 3}, above = {4, 5, 6};
  EXPECT_DOUBLE_EQ(rank_test(base, above).p, 1.0 / 20);
  EXPECT_DOUBLE_EQ(rank_test(base, above).greater, 1);
  EXPECT_DOUBLE_EQ(rank_test(above, base).p, 1);
  const Times x = {1, 2, 4}, y = {3, 5};  // U = 5 of 6; 10 orders, two of them with U >= 5
  EXPECT_DOUBLE_EQ(rank_test(x, y).p, 0.2);
}

TEST(RankTest, ExactAndNormalAgreeWhereTheyMeet) {
  Measured measured(1);
  const Times a = measured.run(20, 100, {}), b = measured.run(20, 100.3, {});
  Times longer = b;
  longer.push_back(100.15);  // near the middle of both: one value more, and no other evidence
  EXPECT_NEAR(rank_test(a, b).p, rank_test(a, longer).p, 0.02);
}

TEST(RankTest, TheTailOfLargeSamplesIsNormalWithACorrectionForContinuity) {
  Times base, other;
  for (int i = 1; i <= 25; ++i) {
    base.push_back(i);
    other.push_back(i + 0.5);
  }
  // U = 325 of 625. Its mean is 312.5 and its deviation sqrt(625 x 51 / 12): z = 12 / 51.54.
  EXPECT_NEAR(rank_test(base, other).p, 0.40795, 1e-4);
}

TEST(RankTest, TiesShareTheirRank) {
  const Times equal(30, 5.0);
  EXPECT_DOUBLE_EQ(rank_test(equal, equal).greater, 0.5);
  EXPECT_DOUBLE_EQ(rank_test(equal, equal).p, 1);
  const Times base = {1, 1, 2}, other = {1, 2, 2};
  EXPECT_DOUBLE_EQ(rank_test(base, other).greater, 6.0 / 9);
}

TEST(EffectiveSize, FallsWithCorrelation) {
  Measured measured(2);
  const auto size = [&](double correlation) {
    return effective_size(measured.run(400, 100, {.correlation = correlation}));
  };
  EXPECT_GT(size(0), 250);
  EXPECT_NEAR(size(0.5), 400.0 / 3, 60);
  EXPECT_LT(size(0.95), 40);
}

TEST(EffectiveSize, TenIndependentSamplesCountAsTen) {
  Measured measured(3);
  int ten = 0;
  for (int i = 0; i < 100; ++i) ten += effective_size(measured.run(10, 100, {})) == 10;
  EXPECT_GE(ten, 80);
}

TEST(EffectiveSize, IsTheNumberOfFewOrEqualSamples) {
  EXPECT_EQ(effective_size(Times(10, 1.0)), 10);
  EXPECT_EQ(effective_size(Times{3, 1}), 2);
  for (const Times& few : {Times{}, Times{1}, Times{1, 2, 3}, Times{2, 3, 1}})
    EXPECT_EQ(effective_size(few), few.size());
}

TEST(StudentsT, AgreesWithItsTable) {
  EXPECT_NEAR(t_upper_tail(3.169, 10), 0.005, 1e-5);
  EXPECT_NEAR(t_upper_quantile(0.005, 10), 3.169, 1e-3);
  EXPECT_NEAR(t_upper_tail(-1.812, 10), 0.95, 1e-4);
  EXPECT_EQ(t_upper_tail(INFINITY, 3), 0);
}

TEST(Multiple, HolmStepsDown) {
  EXPECT_EQ(holm(std::vector{0.02, 0.004, 0.9}, 0.05), (std::vector{true, true, false}));
  EXPECT_EQ(holm(std::vector{0.03, 0.004, 0.9}, 0.05), (std::vector{false, true, false}));
}

TEST(Multiple, BenjaminiHochbergRejectsMoreWhereMuchIsFound) {
  // 0.004 and 0.03 lie above 0.05 / 4 * rank until the third, 0.035 <= 0.0375, takes them along.
  EXPECT_EQ(benjamini_hochberg(std::vector{0.03, 0.035, 0.004, 0.9}, 0.05),
            (std::vector{true, true, true, false}));
  EXPECT_EQ(benjamini_hochberg(std::vector{0.03, 0.04, 0.02, 0.9}, 0.05),
            (std::vector{false, false, false, false}));
  EXPECT_TRUE(benjamini_hochberg({}, 0.05).empty());
}

// Many cases of the same kind, one of which may be slower.
struct Scenario {
  const char* what;
  int runs, samples;
  Noise noise;
};

const Scenario kScenarios[] = {
    {"seven quiet runs", 7, 10, {.run = 0.002, .sample = 0.003}},
    {"seven runs that differ", 7, 15, {.run = 0.005, .sample = 0.005, .correlation = 0.3}},
    {"samples that drift", 7, 100, {.run = 0, .sample = 0.01, .correlation = 0.9}},
    {"three runs that differ much", 3, 10, {.run = 0.05, .sample = 0.005}},
    {"one quiet run per side", 1, 10, {.run = 0.002, .sample = 0.003}},
    {"one noisy run per side", 1, 200, {.run = 0.02, .sample = 0.03, .correlation = 0.5}},
};

std::vector<Decision> decisions_of(const Scenario& scenario, double slowdown, int count,
                                   Measured& measured) {
  std::vector<Shift> shifts;
  for (int i = 0; i < count; ++i) {
    const auto base = measured.runs(scenario.runs, scenario.samples, 100, scenario.noise);
    const auto fresh = measured.runs(scenario.runs, scenario.samples, i == 0 ? 100 * slowdown : 100,
                                     scenario.noise);
    shifts.push_back(scenario.runs == 1 ? shift_of_single_runs(base[0], fresh[0], 0.02)
                                        : shift_of_runs(levels_of(base, fresh), 0.02));
  }
  return decide(shifts, 0.005, 0.05, Family::cases);
}

int count_slower(const Scenario& scenario, double slowdown, int count, int repetitions) {
  Measured measured(4);
  int slower = 0;
  for (int repetition = 0; repetition < repetitions; ++repetition)
    for (const Decision& one : decisions_of(scenario, slowdown, count, measured))
      slower += one.change == Change::slower;
  return slower;
}

TEST(Compare, TheSameAgainstItselfIsNeverSlower) {
  for (const Scenario& scenario : kScenarios)
    EXPECT_EQ(count_slower(scenario, 1, 40, 20), 0) << scenario.what;
}

TEST(Compare, ASlowdownOfFivePercentIsFoundAmongFortyCases) {
  EXPECT_GE(count_slower(kScenarios[0], 1.05, 40, 20), 19);
  EXPECT_GE(count_slower(kScenarios[1], 1.05, 40, 20), 17);
}

TEST(Compare, ASlowdownOfFivePercentIsFoundOrSaidToBeInvisible) {
  Measured measured(8);
  for (const Scenario& scenario : kScenarios) {
    int silent = 0;
    for (int repetition = 0; repetition < 20; ++repetition) {
      const Decision one = decisions_of(scenario, 1.05, 40, measured)[0];
      silent += one.change != Change::slower && one.change != Change::not_able_to_tell;
    }
    EXPECT_LE(silent, 4) << scenario.what << ": more often than the power of 90 % allows";
  }
}

TEST(Compare, TheSmallestSlowdownSeenIsFoundNineTimesInTen) {
  Measured measured(9);
  const Noise noise{.run = 0.004, .sample = 0.003};
  int found = 0;
  for (int repetition = 0; repetition < 200; ++repetition) {
    const auto shift = [&](double slowdown) {
      return shift_of_runs(
          levels_of(measured.runs(7, 10, 100, noise), measured.runs(7, 10, 100 * slowdown, noise)),
          0.02);
    };
    std::vector<Shift> shifts(30, shift(1));
    // The resolution of this machine, from its true spread: sample noise of a median of ten added.
    Shift exact = shifts[0];
    exact.run_deviation = std::hypot(0.004, 0.003 * 1.2533 / std::sqrt(10));
    exact.standard_error = exact.run_deviation * std::sqrt(2.0 / 7);
    const double seen =
        decide(std::vector<Shift>(30, exact), 0.005, 0.05, Family::cases)[0].resolution;
    shifts[0] = shift(1 + seen);
    found += decide(shifts, 0.005, 0.05, Family::cases)[0].change == Change::slower;
  }
  EXPECT_GE(found, 170);
  EXPECT_LE(found, 198);
}

TEST(Compare, OneRunOfEachSideDecidesOnlyWhatRunsOfOneBuildDoNotDo) {
  Measured measured(10);
  const Noise noise{.run = 0, .sample = 0.003};
  const auto change = [&](double slowdown) {
    return decide(std::vector{shift_of_single_runs(measured.run(10, 100, noise),
                                                   measured.run(10, 100 * slowdown, noise), 0.02)},
                  0.005, 0.05, Family::cases)[0]
        .change;
  };
  EXPECT_EQ(change(1.1), Change::not_able_to_tell) << "as far apart as two runs of one build";
  EXPECT_EQ(change(5), Change::slower);
  EXPECT_EQ(change(0.2), Change::faster);
}

TEST(Compare, ManyCasesOfOneRunTellTheirMean) {
  Measured measured(11);
  const auto change = [&](double slowdown) {
    std::vector<double> log_ratios;
    for (const double level : measured.run(196, slowdown, {.sample = 0.02}))
      log_ratios.push_back(std::log(level));
    return decide(std::vector{mean_shift_of_single_runs(log_ratios, 0.02)}, 0.005, 0.05,
                  Family::geometric_means)[0]
        .change;
  };
  EXPECT_EQ(change(1.05), Change::slower);
  EXPECT_EQ(change(1.01), Change::same);
  EXPECT_EQ(change(1.03), Change::same) << "as far apart as two runs of one build";
  EXPECT_EQ(change(0.95), Change::faster);
}

TEST(Compare, RepeatedRunsOfACalibrationStandInForRunsOfASide) {
  RunLevels levels = {{0}, {std::log(1.1)}, {}};
  EXPECT_EQ(shift_of_runs(levels, 0.02).p_slower(), 1) << "nothing shows how far runs differ";
  levels.repeats = {0, 0.002, -0.002, 0.001, -0.001, 0.003};
  const Shift shift = shift_of_runs(levels, 0.02);
  EXPECT_EQ(shift.freedom, 5);
  EXPECT_LT(shift.p_slower(), 1e-4);
}

TEST(Compare, RunsThatNeverDifferAreNotBelieved) {
  const RunLevels levels = {std::vector<double>(7, 0), std::vector<double>(7, 0.0205), {}};
  EXPECT_GT(shift_of_runs(levels, 0.02).run_deviation, 0);
  EXPECT_GT(shift_of_runs(levels, 0.02).p_slower(), 1e-3);
}

TEST(Compare, QuietTimesGiveEveryVerdict) {
  Measured measured(5);
  const Noise noise{.run = 0.001, .sample = 0.003};
  std::vector<Shift> shifts;
  for (const double level : {100.0, 90.0, 110.0, 102.0})
    shifts.push_back(shift_of_runs(
        levels_of(measured.runs(7, 30, 100, noise), measured.runs(7, 30, level, noise)), 0.02));
  shifts.push_back(shift_of_runs(
      levels_of(measured.runs(7, 30, 100, {.run = 0.1}), measured.runs(7, 30, 100, {.run = 0.1})),
      0.02));
  std::vector<Change> changes;
  for (const Decision& one : decide(shifts, 0.005, 0.05, Family::cases))
    changes.push_back(one.change);
  EXPECT_EQ(changes, (std::vector<Change>{Change::same, Change::faster, Change::slower,
                                          Change::unclear, Change::not_able_to_tell}));
  EXPECT_NEAR(shifts[1].ratio(), 0.9, 0.01);
}

TEST(Compare, AChangeBelowTheMarginIsNotSlowerHoweverManyRuns) {
  Measured measured(6);
  const Noise noise{.run = 0.001, .sample = 0.003};
  const Shift one = shift_of_runs(
      levels_of(measured.runs(50, 10, 100, noise), measured.runs(50, 10, 101.5, noise)), 0.02);
  EXPECT_EQ(decide(std::vector{one}, 0.005, 0.05, Family::cases)[0].change, Change::same);
}

TEST(Compare, RunsAgreeWhereTheirRanksAreBeyondChanceAndTheMargin) {
  const RunLevels overlapping = {
      {0, 0.001, 0.002, 0.003, 0.2}, {0.1, 0.101, 0.102, 0.103, 0.104}, {}};
  EXPECT_FALSE(shift_of_runs(overlapping, 0.02).runs_slower) << "p is 0.08";
  const RunLevels near = {{0, 0.001, 0.002, 0.003}, {0.01, 0.011, 0.012, 0.013}, {}};
  EXPECT_FALSE(shift_of_runs(near, 0.02).runs_slower);
  EXPECT_TRUE(shift_of_runs(near, 0.001).runs_slower);
  EXPECT_FALSE(shift_of_runs(near, 0.001).runs_faster);
  EXPECT_TRUE(shift_of_runs({near.fresh, near.base, {}}, 0.001).runs_faster);
}

TEST(Compare, NoChangeIsCalledThatTheRanksOfTheRunsDoNotShow) {
  Shift shift;
  shift.log_ratio = 0.2;
  shift.standard_error = 0.01;
  shift.freedom = 10;
  shift.margin = 0.02;
  const auto change = [&] {
    return decide(std::vector{shift}, 0.005, 0.05, Family::geometric_means)[0].change;
  };
  EXPECT_EQ(change(), Change::slower);
  shift.runs_slower = false;
  EXPECT_NE(change(), Change::slower);
  shift.log_ratio = -0.2;
  EXPECT_EQ(change(), Change::faster);
  shift.runs_faster = false;
  EXPECT_NE(change(), Change::faster);
}

TEST(Compare, GeometricMeansShareAlphaAsHolmDoesAndCasesAsBenjaminiAndHochbergDo) {
  // Two p of 0.8 alpha: more than alpha / 2, less than alpha.
  Shift one;
  one.log_ratio = t_upper_quantile(0.004, 100);
  one.standard_error = 1;
  one.freedom = 100;
  const std::vector<Shift> shifts(2, one);
  for (const Decision& decision : decide(shifts, 0.005, 0.05, Family::geometric_means))
    EXPECT_NE(decision.change, Change::slower);
  for (const Decision& decision : decide(shifts, 0.005, 0.05, Family::cases))
    EXPECT_EQ(decision.change, Change::slower);
}

TEST(Compare, TheErrorOfADifferenceFollowsTheRunsOfBothSides) {
  const RunLevels levels = {{0, 0.01}, {0, 0.01, 0, 0.01, 0.005}, {}};
  const Shift shift = shift_of_runs(levels, 0.02);
  EXPECT_EQ(shift.freedom, 5);
  EXPECT_DOUBLE_EQ(shift.standard_error, shift.run_deviation * std::sqrt(1.0 / 2 + 1.0 / 5));
}

TEST(Compare, SamplesThatDriftSayLessOfASingleRun) {
  Times rising, mixed;
  for (int i = 0; i < 100; ++i) {
    rising.push_back(100 + 0.1 * i);
    mixed.push_back(100 + 0.1 * (i * 37 % 100));
  }
  const Times quiet(100, 100.0);
  const Shift drifts = shift_of_single_runs(rising, quiet, 0.02);
  const Shift scatters = shift_of_single_runs(mixed, quiet, 0.02);
  EXPECT_GT(drifts.standard_error, 3 * scatters.standard_error);
  EXPECT_LT(drifts.freedom, scatters.freedom);
  EXPECT_EQ(shift_of_single_runs(quiet, rising, 0.02).standard_error, drifts.standard_error);
  EXPECT_EQ(shift_of_single_runs(quiet, quiet, 0.02).freedom, 198);
}

TEST(Compare, TheRatioOfSingleRunsIsThatOfTheirMedians) {
  const Times base = {1, 1, 1, 1, 1}, fresh = {1, 1, 2, 5, 5};
  EXPECT_DOUBLE_EQ(shift_of_single_runs(base, fresh, 0.02).ratio(), 2);
}

TEST(Compare, ShiftsAreAveragedAsIfTheyMovedTogether) {
  const Shift one = shift_of_runs({{0, 0.01, 0.02}, {0.3, 0.31, 0.32}, {}}, 0.02);
  const Shift other = shift_of_runs({{0, 0.04}, {0, 0.04}, {}}, 0.1);
  const Shift mean = mean_of_shifts(std::vector<WeightedShift>{{one, 3}, {other, 1}});
  EXPECT_NEAR(mean.log_ratio, 0.75 * 0.3, 1e-12);
  EXPECT_NEAR(mean.standard_error, 0.75 * one.standard_error + 0.25 * other.standard_error, 1e-12);
  EXPECT_NEAR(mean.run_deviation, 0.75 * one.run_deviation + 0.25 * other.run_deviation, 1e-12);
  EXPECT_NEAR(std::log1p(mean.margin), 0.75 * std::log(1.02) + 0.25 * std::log(1.1), 1e-12);
  EXPECT_EQ(mean.freedom, 2);
  EXPECT_TRUE(mean.runs_slower) << "the runs of one of them show it";
  EXPECT_FALSE(mean.runs_faster);
  const Shift alone = mean_of_shifts(std::vector<WeightedShift>{{one, 2}});
  EXPECT_EQ(alone.t_slower(), one.t_slower());
  EXPECT_EQ(mean_of_shifts(std::vector<WeightedShift>{{unknown_shift(0.1), 2}}).p_slower(), 1);
}

TEST(Compare, OneSlowRunDoesNotOutweighTheOthers) {
  Measured measured(7);
  const Noise noise{.run = 0.002, .sample = 0.003};
  const std::vector<Times> base = measured.runs(5, 10, 100, noise);
  std::vector<Times> fresh = measured.runs(5, 10, 100, noise);
  fresh[2] = measured.run(1000, 150, noise);
  const Shift one = shift_of_runs(levels_of(base, fresh), 0.02);
  EXPECT_FALSE(one.runs_slower);
  EXPECT_GT(one.p_slower(), 0.05);
  EXPECT_FALSE(shift_of_runs(levels_of(fresh, base), 0.02).runs_faster);
}

TEST(Compare, SaysHowManyRunsWouldDo) {
  Measured measured(12);
  const Noise noise{.run = 0.01, .sample = 0.001};
  const Shift few = shift_of_runs(
      levels_of(measured.runs(3, 10, 100, noise), measured.runs(3, 10, 100, noise)), 0.02);
  const int needed = runs_needed(few, 0.005, 100, 0.05, Family::cases).value();
  EXPECT_GT(needed, 3);
  const auto resolution = [&](int runs) {
    Shift more = few;
    more.freedom = 2.0 * (runs - 1);
    more.standard_error = few.run_deviation * std::sqrt(2.0 / runs);
    return decide(std::vector<Shift>(100, more), 0.005, 0.05, Family::geometric_means)[0]
        .resolution;
  };
  EXPECT_LE(resolution(needed), 0.05);
  EXPECT_GT(resolution(needed - 1), 0.05) << "and fewer would not";
  EXPECT_FALSE(runs_needed(unknown_shift(0), 0.005, 100, 0.05, Family::cases));
}

TEST(Compare, OfNoCasesDecidesNothing) {
  EXPECT_TRUE(decide({}, 0.005, 0.05, Family::geometric_means).empty());
}

}  // namespace
}  // namespace spmmbench
