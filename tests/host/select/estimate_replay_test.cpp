// Selection replayed on the recorded cases that the kernels' factors were fitted to
// (results/selection).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../selection/recorded.hpp"
#include "select/rank.hpp"
#include "select/row_overlap.hpp"
#include "select/tune.hpp"

namespace spmmbench::estimate_replay {
namespace {

// Written by hand, from what was recorded on two devices.
constexpr double kMostChosen = 1.022;    // chosen by estimates alone, over the fastest; mean
constexpr double kMostMeasured = 1.003;  // the fastest trial over the fastest; mean
constexpr double kMostOfOneCase = 1.10;  // the same of any case

using recorded::Case;

const std::vector<Case>& all_cases() {
  static const std::vector<Case> all =
      recorded::cases(std::string(SPMMBENCH_SOURCE_DIR) + "/results/selection");
  return all;
}
// Those in which there was something to choose.
const std::vector<Case>& cases() {
  static const std::vector<Case> some = [] {
    std::vector<Case> found;
    std::ranges::copy_if(all_cases(), std::back_inserter(found), &Case::has_choice);
    return found;
  }();
  return some;
}

TEST(Selection, NearlyAllRecordedCasesHaveAChoice) {
  EXPECT_GT(cases().size(), 0.98 * static_cast<double>(all_cases().size()));
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
    EstimatesByTrials by_trials;
    for (const Candidate& candidate : all) {
      const bool first = &candidate == all.data();
      if (left == 0 || (!first && !worth_trying(all.front().estimate, by_trials.of(candidate),
                                                fastest, 0, one.shape.n)))
        continue;
      by_trials.took(candidate, us_of(one, candidate.spec));
      fastest = std::min(fastest, us_of(one, candidate.spec));
      --left;
    }
    if (all.empty()) continue;
    losses.push_back(fastest / least_us(one));
    EXPECT_LT(losses.back(), kMostOfOneCase) << one.matrix << ", N = " << one.shape.n;
  }
  EXPECT_LT(mean(losses), kMostMeasured);
}

TEST(Selection, NoKernelTookLessThanWritingCTakes) {
  for (const Case& one : all_cases())
    EXPECT_GT(least_us(one), amounts::c(one.product())) << one.matrix << ", N = " << one.shape.n;
}

// Dense products of a tall A were expected to take less.
TEST(Selection, NoEstimateIsBelowThat) {
  const MatrixFeatures tall = features_of_sizes(1'000'000, 64, 2'000'000);
  for (const std::int64_t n : {1, 8, 32, 128, 512}) {
    const Product product(tall, {.n = n}, Precision::fp16, all_cases().front().device);
    for (const Candidate& candidate : candidates_of(product))
      EXPECT_GE(candidate.estimate.us, amounts::c(product)) << candidate.spec << ", N = " << n;
  }
}

// CTAs that follow others wait for their first copies. Measured on an H200.
TEST(Selection, ATallDenseProductIsEstimatedByCtasThatFollowOneAnother) {
  constexpr double kLeastTimes = 0.95, kMostTimes = 2.2;
  const MatrixFeatures tall = features_of_sizes(1'000'000, 64, 1'984'647);
  for (const auto& [n, us] : {std::pair(8, 170.0), {32, 205.0}, {128, 230.0}}) {
    const Product product(tall, {.n = n}, Precision::fp16, all_cases().back().device);
    const auto all = candidates_of(product);
    const double estimate = std::ranges::find(all, "dense_cluster", &Candidate::spec)->estimate.us;
    EXPECT_GT(estimate, kLeastTimes * us) << n;
    EXPECT_LT(estimate, kMostTimes * us) << n;
  }
}

TEST(Selection, BySizesAMatrixWithFewerNonzerosThanRowsHasEmptyRows) {
  const MatrixFeatures sparse = features_of_sizes(3'000'000, 3'000'000, 400'000);
  EXPECT_DOUBLE_EQ(sparse.empty_rows, 1 - 0.4 / 3);
  EXPECT_EQ(features_of_sizes(10, 10, 30).empty_rows, 0);
  const Product product(sparse, {.n = 8}, Precision::fp16, all_cases().back().device);
  const auto all = candidates_by_sizes(product);
  const auto us = [&](std::string_view spec) {
    return std::ranges::find(all, spec, &Candidate::spec)->estimate.us;
  };
  EXPECT_GT(us("csr_merge"), 2 * us("jagged_slices")) << "154 and 29 us on an H200";
}

// Too short an estimate makes auto try a kernel in vain, or choose it for few calls.
TEST(Selection, EstimatesAreRightInTheMeanOfEveryNumberOfColumns) {
  constexpr double kMostOff = 1.2;
  constexpr std::size_t kFewestCases = 20;
  constexpr std::int64_t kWidest = 512;  // products with more columns are recorded of layers alone
  for (const std::string kernel : {"async_wcsr", "bitmap_dense", "csr_merge", "csr_row_split"}) {
    std::map<std::int64_t, std::vector<double>> ratios;
    for (const Case& one : cases())
      if (const auto time = one.times.find(kernel); time != one.times.end())
        for (const Candidate& candidate : candidates_of(one.product()))
          if (candidate.spec == kernel)
            ratios[one.shape.n].push_back(time->second.us / candidate.estimate.us);
    for (const auto& [n, of_n] : ratios) {
      if (of_n.size() < kFewestCases || n > kWidest) continue;
      EXPECT_LT(mean(of_n), kMostOff) << kernel << ", N = " << n;
      EXPECT_GT(mean(of_n), 1 / kMostOff) << kernel << ", N = " << n;
    }
  }
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
  constexpr double kMostOverPerfect = 1.10;  // total time over that of perfect choices; mean
  std::vector<double> few, many, perfect;
  for (const Case& one : cases()) {
    if (ranked(one).empty()) continue;
    const auto total = [&](std::int64_t calls) {
      const recorded::Time& time = one.times.at(std::string(ranked(one, calls).front().spec));
      return time.prepare_ms * 1e3 + kFew * time.us;
    };
    few.push_back(total(kFew));
    many.push_back(total(kMany));
    perfect.push_back(few.back());
    for (const Candidate& candidate : ranked(one)) {
      const recorded::Time& time = one.times.at(std::string(candidate.spec));
      perfect.back() = std::min(perfect.back(), time.prepare_ms * 1e3 + kFew * time.us);
    }
  }
  EXPECT_LT(mean(few), kMostOverPerfect * mean(perfect));
  EXPECT_LT(1.2 * mean(few), mean(many));
}

MatrixFeatures sizes_of(const Case& one) {
  return features_of_sizes(static_cast<std::int64_t>(one.features.rows),
                           static_cast<std::int64_t>(one.features.cols),
                           static_cast<std::int64_t>(one.features.nnz));
}

// Rows in an order that is known are estimated as a matrix that has them so.
TEST(Selection, AnOrderThatIsKnownIsEstimatedByWhatItsWindowsGather) {
  const WcsrEstimate found = {{0.3, 0.2, 0.15}, {0.32, 0.22, 0.16}};
  const Case& one = cases().front();
  Ranking ranking{one.features, Shape{.n = 8}, Precision::fp16, one.device, 0};
  set_windows({{1, 1, 1}, {1, 1, 1}}, ranking.features);
  const std::vector<Candidate> before = ranking.by_overlap(0.1);
  std::vector<Candidate> known = before;
  ranking.estimate_in_order(found, known);
  set_windows(found, ranking.features);
  const std::vector<Candidate> so = ranking.by_overlap(0.1);
  int anew = 0;
  for (std::size_t i = 0; i < known.size(); ++i) {
    const bool looks_for_one = !known[i].ordered_as.empty();
    anew += looks_for_one ? 1 : 0;
    const double us =
        looks_for_one ? std::ranges::find(so, known[i].ordered_as, &Candidate::spec)->estimate.us
                      : before[i].estimate.us;
    EXPECT_EQ(known[i].estimate.us, us) << known[i].spec;
  }
  EXPECT_GT(anew, 0);
}

TEST(Selection, AProductKeepsWhatItIsMadeFrom) {
  static_assert(!std::is_reference_v<decltype(Product::f)>);
  static_assert(!std::is_reference_v<decltype(Product::device)>);
  const Product product(features_of_sizes(10, 20, 30), Shape{.n = 8}, Precision::fp16,
                        DeviceModel{.sm_count = 7});
  EXPECT_EQ(product.f.nnz, 30);
  EXPECT_EQ(product.device.sm_count, 7);
}

TEST(Selection, BySizesRowsOfALayerShareColumnsAndThoseOfAGraphDoNot) {
  const MatrixFeatures layer = features_of_sizes(512, 512, 512 * 256);
  EXPECT_NEAR(layer.gathered_8, (1 - std::pow(0.5, 8)) / 4, 1e-12);
  EXPECT_LT(layer.stored_8, 1.3 * layer.gathered_8);
  const MatrixFeatures graph = features_of_sizes(100'000, 100'000, 500'000);
  EXPECT_NEAR(graph.gathered_32, 1, 1e-3);
  EXPECT_NEAR(graph.stored_32, 2, 3e-3);
  EXPECT_EQ(features_of_sizes(10, 10, 0).gathered_8, 1);
  EXPECT_DOUBLE_EQ(features_of_sizes(8, 10, 80).gathered_8, 1.0 / 8);
}

// Over the least total of few calls with what is prepared on the device, beyond the copy of A.
TEST(Selection, TheSizesOfAAloneTellWhatFewCallsTakeLeast) {
  constexpr double kMostOfMean = 1.12, kMostOfOneCase = 5;
  const auto total = [](double us, double ms, double there_ms, double calls) {
    return 1e3 * std::max(0.0, ms - there_ms) + calls * us;
  };
  for (const double calls : {1, 10, 30}) {
    std::vector<double> losses;
    for (const Case& one : cases()) {
      if (!one.times.contains("csr_merge")) continue;
      const auto of = [&](std::string_view kernel) {
        const recorded::Time& time = one.times.at(std::string(kernel));
        return total(time.us, time.prepare_ms, one.times.at("csr_merge").prepare_ms, calls);
      };
      auto all = candidates_by_sizes(Product(sizes_of(one), one.shape, one.precision, one.device));
      std::erase_if(all, [&](const auto& c) { return !one.times.contains(std::string(c.spec)); });
      const double there_ms =
          std::ranges::find(all, "csr_merge", &Candidate::spec)->estimate.prepare_ms;
      const auto best = std::ranges::min_element(all, {}, [&](const Candidate& c) {
        return total(c.estimate.us, c.estimate.prepare_ms, there_ms, calls);
      });
      double least = of("csr_merge");
      for (const auto& any : estimators())
        if (any->on_device && one.times.contains(any->spec)) least = std::min(least, of(any->spec));
      losses.push_back(of(best->spec) / least);
      EXPECT_LT(losses.back(), kMostOfOneCase)
          << best->spec << " of " << one.matrix << ", N = " << one.shape.n << ", " << calls;
    }
    EXPECT_LT(mean(losses), kMostOfMean) << calls << " calls, " << losses.size() << " cases";
  }
}

// How much longer a kernel takes, in any recorded case, than the sizes of A tell.
double most_beyond_sizes(const Estimator& estimator) {
  double most = 0;
  for (const Case& one : cases()) {
    if (!one.times.contains(estimator.spec) || one.shape.n < estimator.any_rows_from) continue;
    const Product product(sizes_of(one), one.shape, one.precision, one.device);
    if (const auto estimate = estimator.estimate(product))
      most = std::max(most, us_of(one, estimator.spec) / estimate->us);
  }
  return most;
}

TEST(Selection, WhatIsChosenBySizesHardlyTakesLongerWhereRowsDifferInLength) {
  constexpr double kMost = 3, kOfOthers = 50;
  for (const auto& estimator : estimators()) {
    if (estimator->any_rows_from > 0) {
      EXPECT_LT(most_beyond_sizes(*estimator), kMost) << estimator->spec;
    } else if (estimator->spec == "cusparse_spmv_sell") {
      EXPECT_GT(most_beyond_sizes(*estimator), kOfOthers) << "so the limit means something";
    }
  }
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

TEST(Selection, EveryFactorIsOfAnAmountThatACandidateOfItsTableNames) {
  std::map<std::pair<std::string, std::string_view>, bool> is_named;
  for (const auto& estimator : estimators()) {
    EXPECT_FALSE(estimator->factors.empty()) << estimator->spec << ": run scripts/refit";
    for (const Factors& row : estimator->factors)
      for (const Factor& one : row.us)
        is_named[{estimator->table, one.amount}] |= one.of != nullptr;
    for (const Preparation& row : estimator->preparation)
      for (const Factor& one : row.ms)
        EXPECT_TRUE(one.of != nullptr) << estimator->spec << ' ' << one.amount;
  }
  for (const auto& [of, named] : is_named)
    EXPECT_TRUE(named) << of.first << ' ' << of.second << ": run scripts/refit";
}

TEST(Selection, RowsOfATableAreInTheOrderOfTheirColumns) {
  for (const auto& estimator : estimators())
    EXPECT_TRUE(std::ranges::is_sorted(estimator->factors, {}, &Factors::most_n))
        << estimator->spec;
}

// A sample need not contain the few rows that have nonzeros.
TEST(Selection, RshIsNoCandidateForFewColumnsIn16Bits) {
  constexpr std::int64_t kLeastColumns = 33;
  const auto recorded = std::ranges::find(cases(), "Andrews", &Case::matrix);
  ASSERT_NE(recorded, cases().end());
  const auto has_rsh = [&](std::int64_t n, Precision precision) {
    const Product product(recorded->features, Shape{.n = n}, precision, recorded->device);
    const std::vector<Candidate> all = candidates_of(product);
    return std::ranges::find(all, "rsh", &Candidate::spec) != all.end();
  };
  EXPECT_FALSE(has_rsh(kLeastColumns - 1, Precision::fp16));
  EXPECT_TRUE(has_rsh(kLeastColumns, Precision::fp16));
  EXPECT_TRUE(has_rsh(kLeastColumns - 1, Precision::tf32));
}

// csr_merge reads CSR as it is, too, but only where B is row-major.
TEST(Selection, CusparsesDefaultIsTakenUnmeasuredOnlyOfAVectorAndWhereCsrMergeDoesNotRun) {
  constexpr double kMostFaster = 1.06;  // of matrices, than csr_merge
  int compared = 0;
  for (const Case& one : cases()) {
    if (one.shape.n == 1 || !one.times.contains("csr_merge") ||
        !one.times.contains("cusparse_csr_default"))
      continue;
    ++compared;
    EXPECT_LT(us_of(one, "csr_merge"), kMostFaster * us_of(one, "cusparse_csr_default"))
        << one.matrix << ", N = " << one.shape.n;
  }
  EXPECT_GT(compared, 400);
  const auto standing = [](std::int64_t n, Layout layout) {
    const Product product(cases().front().features, Shape{.n = n, .layout = layout},
                          Precision::fp16, cases().front().device);
    const std::vector<Candidate> all = candidates_of(product);
    return std::ranges::find(all, "cusparse_csr_default", &Candidate::spec)->standing;
  };
  EXPECT_EQ(standing(8, Layout::row_major), Standing::trial);
  EXPECT_EQ(standing(8, Layout::col_major), Standing::full);
  EXPECT_EQ(standing(1, Layout::row_major), Standing::full);
}

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

Estimate estimate_of(std::string_view spec, const MatrixFeatures& f, std::int64_t n) {
  DeviceInfo device;
  device.sm_count = 132;
  const Product product(f, Shape{.n = n}, Precision::fp16, device_model(device, {}));
  return (*std::ranges::find(estimators(), spec, [](const auto& one) { return one->spec; }))
      ->estimate(product)
      .value();
}

// Of 4,000 of 50,000 columns. Measured on an H200: 3.3 us, and 5.7 with csr_row_split.
TEST(Selection, ASingleRowIsNotTakenToBeSlowInManyParts) {
  MatrixFeatures f;
  f.rows = 1;
  f.cols = 50'000;
  f.nnz = f.mean_row = f.max_row = 4000;
  f.gathered_8 = f.gathered_16 = f.gathered_32 = f.stored_8 = f.stored_16 = f.stored_32 = 1;
  EXPECT_LT(estimate_of("async_wcsr", f, 128).us, 5);
  EXPECT_GT(estimate_of("csr_row_split", f, 128).us, 5);
}

// 50 rows, each 400 times. Measured on an H200 with 8 columns: 2.8 us, and 6.0 with jagged_slices
// in an order of its own.
TEST(Selection, AnOrderBringsEqualRowsTogether) {
  constexpr int kRows = 20'000, kKinds = 50, kLength = 60, kCols = 50'000;
  CsrMatrix a{kRows, kCols, {0}, {}, {}};
  for (int row = 0; row < kRows; ++row) {
    for (int i = 0; i < kLength; ++i) a.col_idx.push_back(i * (kCols / kLength) + row % kKinds);
    a.row_ptr.push_back(std::ssize(a.col_idx));
  }
  a.values.assign(a.col_idx.size(), 1);
  MatrixFeatures f = features_of(a);
  f.row_overlap = row_overlap(a);
  EXPECT_GT(f.gathered_8, 0.8);
  const double us = estimate_of("async_wcsr?order=search", f, 8).us;
  EXPECT_LT(us, 5);
  EXPECT_LT(us, estimate_of("jagged_slices?order=search", f, 8).us);
}

// A column of 300,000 entries fills two blocks of 64 columns: 43 MB. Measured on an H200 with 8, 32
// and 128 columns of B: 21, 43 and 154 us; with 8 its trial takes 26 ms.
TEST(Selection, TwoOfFourIsNotTriedWhereZerosPadMostOfA) {
  const MatrixFeatures f = features_of_sizes(300'000, 1, 300'000);
  using Fastest = std::pair<std::int64_t, double>;  // columns of B, measured us of another kernel
  for (const auto& [n, us] : {Fastest{8, 4.7}, {32, 12.4}, {128, 46.5}}) {
    const Estimate padded = estimate_of("two_four", f, n);
    EXPECT_FALSE(worth_trying(estimate_of("cublas_dense", f, n), padded, us, 0, n)) << n;
    EXPECT_GT(padded.prepare_ms, 10);
  }
}

// Measured on an H200: 95 us, about what memory takes for A and B.
TEST(Selection, AFlatDenseProductTakesAboutAsLongAsItsOperands) {
  MatrixFeatures f;
  f.rows = 64;
  f.cols = 1e6;
  f.nnz = 2e6;
  const double us = estimate_of("cublas_dense", f, 128).us;
  EXPECT_GT(us, 60);
  EXPECT_LT(us, 120);
}

// A group of gap_slices has eight entries of every lane, however short its row is.
TEST(Selection, RowsThatAreShorterThanAGroupTakeAsLongAsFullOnes) {
  MatrixFeatures f;
  f.rows = 1e6;
  f.cols = 64;
  const auto gaps_us = [&](double length) {
    f.nnz = f.rows * length;
    f.mean_row = f.max_row = length;
    return estimate_of("gap_slices", f, 1).us;
  };
  EXPECT_GT(gaps_us(2), 0.9 * gaps_us(4));
  EXPECT_LT(gaps_us(4), 0.7 * gaps_us(16));
}

// It gains over no matrix of which the cache holds all.
TEST(Selection, SlicedEllpackIsACandidateBeyondTheCacheAlone) {
  MatrixFeatures f;
  f.gathered_8 = f.gathered_16 = f.gathered_32 = f.stored_8 = f.stored_16 = f.stored_32 = 1;
  const auto has_sell = [&](double rows) {
    constexpr double kLength = 5;
    f.rows = f.cols = rows;
    f.nnz = kLength * rows;
    f.mean_row = f.max_row = kLength;
    const auto all =
        candidates_of(Product(f, Shape{.n = 1}, Precision::fp16, cases().front().device));
    return std::ranges::find(all, "cusparse_spmv_sell", &Candidate::spec) != all.end();
  };
  EXPECT_FALSE(has_sell(4e5));
  EXPECT_TRUE(has_sell(2e6));
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
}  // namespace spmmbench::estimate_replay
