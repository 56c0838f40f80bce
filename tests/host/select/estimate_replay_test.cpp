// Selection replayed on the recorded cases that the kernels' factors were fitted to
// (results/selection).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "../../selection/recorded.hpp"
#include "select/rank.hpp"
#include "select/tune.hpp"

namespace spmmbench {
namespace {

// Written by hand, from what was recorded on two devices.
constexpr double kMostChosen = 1.025;    // chosen by estimates alone, over the fastest; mean
constexpr double kMostMeasured = 1.003;  // the fastest trial over the fastest; mean
constexpr double kMostOfOneCase = 1.10;  // the same of any case

using recorded::Case;

const std::vector<Case>& cases() {
  static const std::vector<Case> all =
      recorded::cases(std::string(SPMMBENCH_SOURCE_DIR) + "/results/selection");
  return all;
}

double least_us(const Case& one) {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [kernel, time] : one.times) least = std::min(least, time.us);
  return least;
}

double us_of(const Case& one, std::string_view kernel) {
  return one.times.at(std::string(kernel)).us;
}

// Those that ran, best first, and trials last.
std::vector<Candidate> ranked(const Case& one, std::int64_t calls = 0) {
  std::vector<Candidate> all =
      Ranking{one.features, one.shape, one.precision, one.device, calls}.by_overlap(
          one.features.row_overlap);
  std::erase_if(all, [&](const Candidate& c) { return !one.times.contains(std::string(c.spec)); });
  return all;
}

double mean(const std::vector<double>& losses) {
  double sum = 0;
  for (const double loss : losses) sum += std::log(loss);
  return std::exp(sum / static_cast<double>(losses.size()));
}

TEST(Selection, ChoosesNearlyTheFastestOfTheRecordedCases) {
  std::vector<double> losses;
  for (const Case& one : cases())
    if (const auto all = ranked(one); !all.empty())
      losses.push_back(us_of(one, all.front().spec) / least_us(one));
  EXPECT_GT(losses.size(), 0.99 * static_cast<double>(cases().size()));
  EXPECT_LT(mean(losses), kMostChosen);
}

TEST(Selection, ItsTrialsFindTheFastestOfTheRecordedCases) {
  constexpr int kTrials = 8;  // auto's default
  std::vector<double> losses;
  for (const Case& one : cases()) {
    const auto all = ranked(one);
    double fastest = std::numeric_limits<double>::infinity();
    int left = all.empty() || any_may_win(all, 0, one.shape.n) ? kTrials : 1;
    for (const Candidate& candidate : all) {
      const bool first = &candidate == all.data();
      if (left == 0 || (!first && !worth_trying(all.front().estimate, candidate.estimate, fastest,
                                                0, one.shape.n)))
        continue;
      fastest = std::min(fastest, us_of(one, candidate.spec));
      --left;
    }
    if (all.empty()) continue;
    losses.push_back(fastest / least_us(one));
    EXPECT_LT(losses.back(), kMostOfOneCase) << one.matrix << ", N = " << one.shape.n;
  }
  EXPECT_LT(mean(losses), kMostMeasured);
}

// So the limit means something.
TEST(Selection, AlwaysTakingOneKernelIsBeyondTheLimit) {
  for (const auto& estimator : estimators()) {
    std::vector<double> losses;
    for (const Case& one : cases())
      if (one.times.contains(estimator->spec))
        losses.push_back(us_of(one, estimator->spec) / least_us(one));
    if (losses.empty()) continue;
    EXPECT_GT(mean(losses), kMostChosen) << estimator->spec;
  }
}

TEST(Selection, TakesWhatIsPreparedSoonerForFewCalls) {
  constexpr std::int64_t kFew = 10, kMany = 1'000'000'000;
  std::vector<double> few, many;
  for (const Case& one : cases()) {
    if (ranked(one).empty()) continue;
    const auto total = [&](std::int64_t calls) {
      const recorded::Time& time = one.times.at(std::string(ranked(one, calls).front().spec));
      return time.prepare_ms * 1e3 + kFew * time.us;
    };
    few.push_back(total(kFew));
    many.push_back(total(kMany));
  }
  EXPECT_LT(1.4 * mean(few), mean(many));
}

TEST(Selection, HasAnEstimateForEveryNAndPrecisionAlsoOfTheProductToBeginWith) {
  const Case& any = cases().front();
  for (const Precision precision : kPrecisions)
    for (const std::int64_t n : {1, 2, 7, 32, 33, 100, 128, 129, 100000}) {
      const auto all = candidates_of(Product(any.features, Shape{.n = n}, precision, any.device));
      EXPECT_EQ(std::ranges::count(all, "csr_merge", &Candidate::spec), 1)
          << to_string(precision) << " N = " << n;
    }
}

TEST(Selection, EveryEstimatorHasFactorsForItsAmounts) {
  for (const auto& estimator : estimators())
    for (const Factors& row : estimator->factors) {
      if (row.candidate != estimator->spec) continue;
      EXPECT_EQ(row.us.size(), estimator->us.size()) << estimator->spec << ": run scripts/refit";
      EXPECT_EQ(row.prepare_ms.size(), estimator->prepare_ms.size()) << estimator->spec;
    }
}

// A sample need not contain the few rows that have nonzeros.
TEST(Selection, TwoOfFourIsACandidateWhereNoSampledRowHasThree) {
  MatrixFeatures f;
  f.rows = f.cols = 4096;
  f.nnz = f.rows * f.cols / 2;
  f.gathered_8 = f.gathered_16 = f.gathered_32 = f.stored_8 = f.stored_16 = f.stored_32 = 0.1;
  const auto is_candidate = [&](double most_of_four) {
    f.most_of_four = most_of_four;
    const auto all =
        candidates_of(Product(f, Shape{.n = 64}, Precision::fp16, cases().front().device));
    return std::ranges::find(all, "two_four", &Candidate::spec) != all.end();
  };
  EXPECT_TRUE(is_candidate(2));
  EXPECT_FALSE(is_candidate(3));
}

TEST(Selection, EstimatesWhereAllSampledRowsAreEmpty) {
  MatrixFeatures f;
  f.rows = f.cols = 1e6;
  f.nnz = 100;
  f.gathered_8 = f.gathered_16 = f.gathered_32 = f.stored_8 = f.stored_16 = f.stored_32 = 1;
  f.empty_rows = 1;
  for (const std::int64_t n : {1, 64, 512})
    for (const Candidate& one :
         candidates_of(Product(f, Shape{.n = n}, Precision::fp16, cases().front().device)))
      EXPECT_TRUE(std::isfinite(one.estimate.us)) << one.spec << ", N = " << n;
}

}  // namespace
}  // namespace spmmbench
