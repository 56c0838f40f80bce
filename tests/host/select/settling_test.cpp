// What is prepared while a product is launched, by the policy alone and replayed on recorded times.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "../../selection/recorded.hpp"
#include "select/settling.hpp"
#include "select/tune.hpp"

namespace spmmbench {
namespace {

constexpr double kForever = 1e12;  // microseconds

// Candidate 0 is launched from the begin on. All are prepared on the device.
std::vector<Candidate> beside_start(std::vector<Estimate> others) {
  std::vector<Candidate> all = {{"start", {10, 0}}};
  for (const Estimate& one : others) all.push_back({"other", one});
  for (Candidate& one : all) one.on_device = true;
  return all;
}

// The steps at 1, 2, 4, ... launches, where a step takes what was estimated and all times are as
// estimated but for those of `us`.
std::map<std::int64_t, std::vector<Settling::Step>> steps_of(
    Settling& settling, std::map<std::size_t, double> us = {}) {
  std::map<std::int64_t, std::vector<Settling::Step>> all;
  for (std::int64_t launches = 1; launches <= 1 << 20; launches *= 2)
    while (const auto step = settling.next(launches)) {
      all[launches].push_back(*step);
      const Estimate& estimate = settling.candidate(step->candidate).estimate;
      const double real = us.contains(step->candidate) ? us[step->candidate] : estimate.us;
      settling.took(*step, estimate.prepare_ms * 1e3,
                    step->measure ? std::optional(real) : std::nullopt);
    }
  return all;
}

TEST(Settling, NothingIsPreparedBeforeTheLaunchesToComeWouldPayForIt) {
  Settling settling(beside_start({{5, 1}}), 0);
  EXPECT_FALSE(settling.next(128)) << "640 us saved for 1,000";
  const auto step = settling.next(256);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->candidate, 1U);
  EXPECT_FALSE(step->measure);
  EXPECT_TRUE(settling.took(*step, 1000, {}));
  EXPECT_EQ(settling.current(), 1U);
  EXPECT_TRUE(settling.settled()) << "the other is twice as slow";
}

TEST(Settling, TheLaunchThatIsDueIsOneOfThoseToCome) {
  Settling settling(beside_start({{5, 0.038}}), 0);
  EXPECT_FALSE(settling.next_build(8)) << "45 us saved, 38 and a step to be paid";
  EXPECT_TRUE(settling.next_build(9));
}

TEST(Settling, WhatWasSpentBeforeTheFirstLaunchCountsAsLaunches) {
  Settling settling(beside_start({{5, 1}}), 0, 1000);
  EXPECT_EQ(settling.products_us(10), 1100);
  EXPECT_FALSE(settling.next_build(100)) << "1,005 us saved, 1,000 and a step to be paid";
  EXPECT_TRUE(settling.next_build(102));
}

TEST(Settling, TheCopyOfAThatIsThereIsNotPaidTwice) {
  std::vector<Candidate> all = beside_start({{5, 1}});
  all[0].estimate.prepare_ms = 0.9;
  Settling settling(all, 0);
  EXPECT_FALSE(settling.next(16));
  EXPECT_TRUE(settling.next(32));
}

TEST(Settling, WhatTheHostPreparesHasToPayTwiceAndWithItsOwnCopyOfA) {
  std::vector<Candidate> all = beside_start({{5, 1}});
  all[0].estimate.prepare_ms = 0.9;
  all[1].on_device = false;
  Settling settling(all, 0);
  EXPECT_FALSE(settling.next(256)) << "1.3 ms saved, 1 ms expected";
  EXPECT_TRUE(settling.next(512));
}

// The launches after which a second candidate is built, whose preparation should take 20 ms, where
// that of the first has taken so long instead of 1 ms.
std::int64_t launches_before_the_second(double first_us, bool on_device) {
  std::vector<Candidate> all = beside_start({{6, 1}, {2, 20}});
  for (Candidate& one : all) one.on_device = on_device;
  Settling settling(all, 0);
  const auto first = settling.next(2048);
  EXPECT_EQ(first->candidate, 1U);
  settling.took(*first, first_us, {});
  std::int64_t launches = 2048;
  while (launches < (1 << 20) && !settling.next(launches)) launches *= 2;
  return launches;
}

TEST(Settling, OnceTheHostTakesLongerThanEstimatedItIsExpectedToDoSoAgain) {
  EXPECT_EQ(launches_before_the_second(1000, false), 16384);
  EXPECT_EQ(launches_before_the_second(8000, false), 65536);
}

TEST(Settling, OnceTheDeviceTakesLongerThanEstimatedAsMuchMoreIsExpectedOfOthers) {
  EXPECT_EQ(launches_before_the_second(1000, true), 8192);
  EXPECT_EQ(launches_before_the_second(8000, true), 8192);
  EXPECT_EQ(launches_before_the_second(40'000, true), 16384) << "59 ms, at most";
}

TEST(Settling, OneThatIsNotExpectedToGainIsNotTakenUnmeasured) {
  std::vector<Candidate> all = beside_start({{5, 0}});
  all[1].standing = Standing::trial;
  Settling settling(all, 0);
  EXPECT_FALSE(settling.next(64));
  for (const auto& [launches, taken] : steps_of(settling))
    for (const auto& step : taken) EXPECT_TRUE(step.measure) << launches;
  EXPECT_EQ(settling.current(), 1U) << "its trial was faster";
}

TEST(Settling, BetterEstimatesKeepWhatIsLaunchedAndWhatHasFailed) {
  Settling settling(beside_start({{5, 0.1}}), 0);
  const auto built = settling.next_build(64);
  ASSERT_TRUE(built);
  settling.took(*built, 100, {});
  std::vector<Candidate> all = beside_start({{4, 0.1}});
  all[1].spec = "fails";
  all.push_back({"other", {5, 0.1}, Standing::full, true});
  settling.estimate_anew(all);
  EXPECT_EQ(settling.candidate(settling.current()).spec, "other");
  EXPECT_EQ(settling.products_us(64), 640);
  const auto better = settling.next_build(128);
  ASSERT_TRUE(better);
  EXPECT_EQ(settling.candidate(better->candidate).spec, "fails");
  settling.failed(*better, 100);
  settling.estimate_anew(all);
  EXPECT_FALSE(settling.next_build(1 << 20));
}

TEST(Settling, BetterEstimatesKeepMeasuredTimes) {
  const std::vector<Candidate> all = beside_start({{9, 0.1}});
  Settling settling(all, 0);
  ASSERT_TRUE(settling.took({1, true}, 100, 6));
  settling.estimate_anew(all);
  EXPECT_EQ(settling.products_us(10), 60);
  EXPECT_FALSE(settling.took({0, true}, 100, 7)) << "the other takes 6 us";
}

TEST(Settling, CloseOnesAreMeasuredOnceProductsHaveTakenFarLonger) {
  Settling settling(beside_start({{11, 0}, {12, 1}, {100, 0}}), 0);
  const auto taken = steps_of(settling, {{2, 9}});
  double spent_us = 0;
  std::vector<std::size_t> measured;
  for (const auto& [launches, of] : taken)
    for (const auto& step : of) {
      EXPECT_TRUE(step.measure);
      measured.push_back(step.candidate);
      spent_us += settling.candidate(step.candidate).estimate.prepare_ms * 1e3;
      EXPECT_LT(spent_us, 10.0 * static_cast<double>(launches) / 2);
    }
  EXPECT_EQ(measured, (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(settling.current(), 2U);
  EXPECT_TRUE(settling.settled());
}

// The launches after which one of so many microseconds is measured beside the first, of 10.
std::int64_t launches_before_a_trial_of(double us) {
  Settling settling(beside_start({{us, 0}}), 0);
  std::int64_t launches = 1;
  while (launches < (1 << 20) && !settling.next(launches)) launches *= 2;
  return launches;
}

TEST(Settling, TheLessATrialShouldGainTheLaterItBegins) {
  EXPECT_EQ(launches_before_a_trial_of(10), 1024) << "1 us a launch";
  EXPECT_EQ(launches_before_a_trial_of(12), 4096) << "a quarter of that";
}

TEST(Settling, WhatFailsIsNotTriedASecondTime) {
  Settling settling(beside_start({{5, 0}, {6, 0}}), 0);
  const auto first = settling.next(64);
  ASSERT_TRUE(first);
  settling.failed(*first, 0);
  const auto second = settling.next(64);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->candidate, 2U);
  settling.failed(*second, 0);
  EXPECT_FALSE(settling.next(1 << 20));
  EXPECT_TRUE(settling.settled());
}

TEST(Settling, WhereTheLaunchedOneCannotBeMeasuredNothingIs) {
  Settling settling(beside_start({{11, 0}}), 0);
  const auto trial = settling.next(1 << 20);
  ASSERT_TRUE(trial);
  EXPECT_EQ(trial->candidate, 0U);
  settling.failed(*trial, 0);
  EXPECT_FALSE(settling.next(1 << 21));
  EXPECT_TRUE(settling.settled());
}

TEST(Settling, WhatSpendsMoreThanEstimatedDelaysTheNextTrial) {
  Settling settling(beside_start({{11, 0}, {11, 0}}), 0);
  const auto own = settling.next(1 << 10);
  ASSERT_TRUE(own);
  settling.took(*own, kForever, 10.0);
  EXPECT_FALSE(settling.next(1 << 20));
  EXPECT_FALSE(settling.settled());
}

// Recorded cases with the kernel that needs no preparation.
class Replayed {
 public:
  // What the host prepares takes so many times as long as recorded.
  Replayed(const recorded::Case& one, double on_host) : case_(one), on_host_(on_host) {}

  // The time of preparation and so many calls, A being on the device, over the least of all
  // kernels.
  std::map<std::int64_t, double> totals() const {
    std::vector<Candidate> ranked =
        Ranking{case_.features, case_.shape, case_.precision, case_.device, 0}.by_overlap(
            case_.features.row_overlap);
    std::erase_if(ranked, [&](const Candidate& c) { return !has(c.spec); });
    const auto own = std::ranges::find(ranked, kStart, &Candidate::spec);
    Settling settling(ranked, own - ranked.begin());
    double total_us = prepare_us(kStart);
    std::map<std::int64_t, double> totals;
    std::int64_t launches = 0;
    for (std::int64_t due = 1; launches < kCalls.back(); due *= 2) {
      const double us = time(settling).us;
      for (const std::int64_t calls : kCalls)
        if (calls > launches && calls <= due)
          totals[calls] = total_us + static_cast<double>(calls - launches) * us;
      total_us += static_cast<double>(due - launches) * us;
      launches = due;
      while (const auto step = settling.next(launches)) {
        const std::string_view spec = settling.candidate(step->candidate).spec;
        const double us_of = at(spec).us;
        double spent_us = step->candidate == settling.current() ? 0 : prepare_us(spec);
        if (step->measure) spent_us += measure_ms(us_of) * 1e3;
        total_us += spent_us;
        settling.took(*step, spent_us, step->measure ? std::optional(us_of) : std::nullopt);
      }
    }
    for (auto& [calls, total] : totals) total /= least_us(calls);
    return totals;
  }

  static constexpr std::string_view kStart = "csr_merge";
  static constexpr std::array<std::int64_t, 7> kCalls = {1, 3, 10, 30, 100, 1000, 10000};

 private:
  bool has(std::string_view spec) const { return case_.times.contains(std::string(spec)); }
  const recorded::Time& at(std::string_view spec) const {
    return case_.times.at(std::string(spec));
  }
  const recorded::Time& time(const Settling& settling) const {
    return at(settling.candidate(settling.current()).spec);
  }
  // What csr_merge prepares is the copy of A, but for this.
  double prepare_us(std::string_view spec) const {
    constexpr double kWorkspaceUs = 20;
    const auto estimator = std::ranges::find(estimators(), spec, &Estimator::spec);
    // What is no candidate are algorithms of vendors, which read A where it lies.
    const bool on_device = estimator == estimators().end() || (*estimator)->on_device;
    return kWorkspaceUs + 1e3 * (on_device
                                     ? std::max(0.0, at(spec).prepare_ms - at(kStart).prepare_ms)
                                     : on_host_ * at(spec).prepare_ms);
  }
  double least_us(std::int64_t calls) const {
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [spec, of] : case_.times)
      least = std::min(least, prepare_us(spec) + static_cast<double>(calls) * of.us);
    return least;
  }

  const recorded::Case& case_;
  double on_host_;
};

// The mean and the largest of each number of calls are below the limits.
void expect_totals(double on_host, double most_of_mean, double most_of_one) {
  const auto cases = recorded::cases(std::string(SPMMBENCH_SOURCE_DIR) + "/results/selection");
  std::map<std::int64_t, std::vector<double>> totals;
  for (const recorded::Case& one : cases)
    if (one.times.contains(std::string(Replayed::kStart)))
      for (const auto& [calls, total] : Replayed(one, on_host).totals()) {
        totals[calls].push_back(std::log(total));
        EXPECT_LT(total, most_of_one)
            << calls << " calls: " << one.matrix << ", N = " << one.shape.n;
      }
  for (const auto& [calls, of] : totals)
    EXPECT_LT(std::exp(std::reduce(of.begin(), of.end()) / static_cast<double>(of.size())),
              most_of_mean)
        << calls << " calls";
}

TEST(Settling, ReplayedItsTotalIsNearTheLeastForAnyNumberOfCalls) { expect_totals(1, 1.5, 5); }

TEST(Settling, ReplayedItsTotalIsNearTheLeastOnAHostThatTakesTenTimesAsLong) {
  expect_totals(10, 1.5, 5);
}

}  // namespace
}  // namespace spmmbench
