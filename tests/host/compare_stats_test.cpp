// The rank test and the verdicts, on times drawn with a fixed seed: noise within a run that depends
// on the sample before, and runs that differ as a whole.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "stats/compare.hpp"
#include "stats/rank_test.hpp"

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

TEST(RankTest, ExactTailOfSmallSamples) {
  const Times base = {1, 2, 3}, above = {4, 5, 6};
  EXPECT_DOUBLE_EQ(rank_test(base, above, 3, 3).p, 1.0 / 20);
  EXPECT_DOUBLE_EQ(rank_test(base, above, 3, 3).greater, 1);
  EXPECT_DOUBLE_EQ(rank_test(above, base, 3, 3).p, 1);
  const Times x = {1, 2, 4}, y = {3, 5};  // U = 5 of 6; 10 orders, two of them with U >= 5
  EXPECT_DOUBLE_EQ(rank_test(x, y, 3, 2).p, 0.2);
}

TEST(RankTest, ExactAndNormalAgreeWhereTheyMeet) {
  Measured measured(1);
  const Times a = measured.run(20, 100, {}), b = measured.run(20, 100.3, {});
  const double exact = rank_test(a, b, 20, 20).p, normal = rank_test(a, b, 20.001, 20.001).p;
  EXPECT_NEAR(exact, normal, 0.01);
}

TEST(RankTest, TiesShareTheirRank) {
  const Times equal(30, 5.0);
  EXPECT_DOUBLE_EQ(rank_test(equal, equal, 30, 30).greater, 0.5);
  EXPECT_DOUBLE_EQ(rank_test(equal, equal, 30, 30).p, 1);
  const Times base = {1, 1, 2}, other = {1, 2, 2};
  EXPECT_DOUBLE_EQ(rank_test(base, other, 3, 3).greater, 6.0 / 9);
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

TEST(EffectiveSize, OfFewOrEqualSamples) {
  EXPECT_EQ(effective_size(Times(10, 1.0)), 10);
  EXPECT_EQ(effective_size(Times{3, 1}), 2);
}

TEST(Compare, RunsThatDifferCountAsFewSamples) {
  Measured measured(3);
  const auto effective = [&](int base, int fresh, double run_noise) {
    const Noise noise{.run = run_noise, .sample = 0.001};
    return compare_times(measured.runs(base, 50, 100, noise), measured.runs(fresh, 50, 100, noise),
                         0.02);
  };
  EXPECT_LT(effective(4, 4, 0.05).base_effective, 6);
  EXPECT_GT(effective(4, 4, 0).base_effective, 100);
  EXPECT_LT(effective(5, 1, 0.05).new_effective, 2) << "what one side shows holds for the other";
  EXPECT_GT(effective(1, 1, 0.05).base_effective, 20) << "one run each shows nothing of it";
}

struct Scenario {
  const char* what;
  int runs, samples;
  Noise noise;
};

const Scenario kScenarios[] = {
    {"one quiet run per side", 1, 10, {.run = 0.002, .sample = 0.003}},
    {"one noisy run per side", 1, 200, {.run = 0.002, .sample = 0.03, .correlation = 0.5}},
    {"samples that drift", 1, 100, {.run = 0, .sample = 0.01, .correlation = 0.9}},
    {"seven runs that differ", 7, 15, {.run = 0.01, .sample = 0.005, .correlation = 0.3}},
    {"three runs that differ much", 3, 10, {.run = 0.05, .sample = 0.005}},
};

int count_slower(const Scenario& scenario, double slowdown, int count, int repetitions) {
  Measured measured(4);
  int slower = 0;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    std::vector<TimeComparison> cases;
    for (int i = 0; i < count; ++i)
      cases.push_back(
          compare_times(measured.runs(scenario.runs, scenario.samples, 100, scenario.noise),
                        measured.runs(scenario.runs, scenario.samples,
                                      i == 0 ? 100 * slowdown : 100, scenario.noise),
                        0.02));
    const std::vector<Change> changes = decide(cases, 0.01);
    slower += slowdown == 1 ? std::count(changes.begin(), changes.end(), Change::slower)
                            : changes[0] == Change::slower;
  }
  return slower;
}

TEST(Compare, TheSameAgainstItselfIsNeverSlower) {
  for (const Scenario& scenario : kScenarios)
    EXPECT_EQ(count_slower(scenario, 1, 40, 20), 0) << scenario.what;
}

TEST(Compare, ASlowdownOfFivePercentIsFound) {
  for (const Scenario& scenario : {kScenarios[0], kScenarios[1], kScenarios[3]})
    EXPECT_GE(count_slower(scenario, 1.05, 1, 20), 19) << scenario.what;
}

TEST(Compare, ASlowdownOfFivePercentIsFoundAmongFortyCases) {
  EXPECT_GE(count_slower(kScenarios[0], 1.05, 40, 20), 17);
  EXPECT_GE(count_slower(kScenarios[3], 1.05, 40, 20), 12);
}

TEST(Compare, QuietTimesGiveEveryVerdict) {
  Measured measured(5);
  const Noise noise{.run = 0, .sample = 0.003};
  const std::vector<Times> base = measured.runs(1, 30, 100, noise);
  std::vector<TimeComparison> cases;
  for (const double level : {100.0, 90.0, 110.0})
    cases.push_back(compare_times(base, measured.runs(1, 30, level, noise), 0.02));
  cases.push_back(compare_times(base, measured.runs(1, 2, 103, noise), 0.02));
  EXPECT_EQ(decide(cases, 0.01),
            (std::vector<Change>{Change::same, Change::faster, Change::slower, Change::unclear}));
  EXPECT_NEAR(cases[1].ratio, 0.9, 0.01);
}

TEST(Compare, AChangeBelowTheMarginIsNotSlowerHoweverManySamples) {
  Measured measured(6);
  const Noise noise{.run = 0, .sample = 0.003};
  const TimeComparison one =
      compare_times(measured.runs(1, 2000, 100, noise), measured.runs(1, 2000, 101.5, noise), 0.02);
  EXPECT_EQ(decide(std::vector{one}, 0.01), std::vector{Change::same});
}

TEST(Compare, ManyCasesNeedMoreEvidence) {
  TimeComparison one;
  one.p_slower = 0.004;
  EXPECT_EQ(decide(std::vector{one}, 0.01)[0], Change::slower);
  std::vector<TimeComparison> many(10, TimeComparison{});
  many[3] = one;
  EXPECT_EQ(decide(many, 0.01)[3], Change::unclear);
}

TEST(Compare, ManySamplesOfOneSlowRunDoNotOutweighTheOtherRuns) {
  Measured measured(7);
  const Noise noise{.run = 0, .sample = 0.003};
  const std::vector<Times> base = measured.runs(5, 10, 100, noise);
  std::vector<Times> fresh = measured.runs(5, 10, 100, noise);
  fresh[2] = measured.run(1000, 150, noise);
  TimeComparison one = compare_times(base, fresh, 0.02);
  EXPECT_FALSE(one.runs_slower);
  one.p_slower = 0;
  EXPECT_NE(decide(std::vector{one}, 0.01)[0], Change::slower);
}

TEST(Compare, NoCases) { EXPECT_TRUE(decide({}, 0.01).empty()); }

}  // namespace
}  // namespace spmmbench
