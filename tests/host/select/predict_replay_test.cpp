// Selection replayed on the recorded cases that its coefficients were made from
// (results/selection/cases.json, written by scripts/fit_selection.py).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "../../selection/recorded_product.hpp"
#include "select/coefficients.hpp"
#include "select/predict.hpp"

namespace spmmbench {
namespace {

struct RecordedCase : RecordedProduct {
  std::map<std::string, double> times_us, prepare_ms, predicted_us, predicted_prepare_ms;
};

struct RecordedCases {
  double mean_regret = 0;
  std::map<std::int64_t, double> mean_total;  // by number of calls
  std::vector<RecordedCase> cases;
};

const RecordedCases& recorded() {
  static const RecordedCases all = [] {
    std::ifstream file(std::string(SPMMBENCH_SOURCE_DIR) + "/results/selection/cases.json");
    const auto document = nlohmann::json::parse(file);
    RecordedCases out;
    out.mean_regret = document.at("mean_regret");
    for (const auto& [calls, total] : document.at("mean_total").items())
      out.mean_total[std::stoll(calls)] = total;
    for (const auto& entry : document.at("cases"))
      out.cases.push_back({recorded_product(document, entry), entry.at("times_us"),
                           entry.at("prepare_ms"), entry.at("predicted_us"),
                           entry.at("predicted_prepare_ms")});
    return out;
  }();
  return all;
}

// Without trials, which are not picked by their predictions.
std::vector<Candidate> predicted(const RecordedCase& one) {
  auto all = predict(one.features, one.n, one.layout, one.precision, one.device);
  std::erase_if(all, [](const Candidate& c) { return c.standing == Standing::trial; });
  return all;
}

// Geometric mean over the cases of what the picked kernel took over the least that one took, for
// so many calls with preparation; 0: per call. Cases where pick(case) names no kernel that ran are
// left out.
template <class Pick>
double mean_regret(std::int64_t calls, const Pick& pick) {
  double sum = 0;
  int count = 0;
  for (const RecordedCase& one : recorded().cases) {
    const auto cost = [&](const std::string& kernel) {
      const double us = one.times_us.at(kernel);
      return calls == 0 ? us : one.prepare_ms.at(kernel) * 1e3 + static_cast<double>(calls) * us;
    };
    const std::string picked = pick(one);
    if (!one.times_us.contains(picked)) continue;
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [kernel, us] : one.times_us) least = std::min(least, cost(kernel));
    sum += std::log(cost(picked) / least);
    ++count;
  }
  return std::exp(sum / count);
}

// Of the kernels that ran.
std::string pick_by_prediction(const RecordedCase& one, std::int64_t calls) {
  std::string best;
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [kernel, prediction, standing] : predicted(one)) {
    const double cost =
        calls == 0 ? prediction.rank_us
                   : prediction.prepare_ms * 1e3 + static_cast<double>(calls) * prediction.rank_us;
    if (!one.times_us.contains(std::string(kernel)) || cost >= least) continue;
    least = cost;
    best = kernel;
  }
  return best;
}

TEST(Selection, TheTableHasAFactorForEveryTerm) {
  EXPECT_EQ(named_terms(Terms{}).size(), kCoefficients[0].us.size())
      << "scripts/fit_selection.py --write makes the table of these terms";
  EXPECT_EQ(named_terms(PrepareTerms{}).size(), kCoefficients[0].prepare_ms.size());
}

std::set<std::string> all_candidates() {
  std::set<std::string> out;
  for (const RecordedCase& one : recorded().cases)
    for (const Candidate& candidate : predicted(one)) out.emplace(candidate.name);
  return out;
}

TEST(Selection, PredictsWhatTheFitPredicted) {
  constexpr double kRounding = 1e-3;  // of the coefficients as written, five digits
  for (const RecordedCase& one : recorded().cases) {
    std::size_t ran = 0;
    for (const auto& [name, prediction, standing] : predicted(one)) {
      const std::string kernel(name);
      if (!one.times_us.contains(kernel)) continue;
      ++ran;
      ASSERT_TRUE(one.predicted_us.contains(kernel))
          << one.name << " N = " << one.n << " " << kernel;
      const double us = one.predicted_us.at(kernel), ms = one.predicted_prepare_ms.at(kernel);
      EXPECT_NEAR(prediction.us, us, kRounding * us)
          << one.name << " N = " << one.n << " " << kernel;
      EXPECT_NEAR(prediction.prepare_ms, ms, kRounding * ms)
          << one.name << " N = " << one.n << " " << kernel;
    }
    EXPECT_EQ(ran, one.predicted_us.size()) << one.name << " N = " << one.n;
  }
}

TEST(Selection, HasACandidateForEveryNAndPrecision) {
  const RecordedCase& any = recorded().cases.front();
  for (const Precision precision :
       {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16})
    for (const std::int64_t n : {1, 2, 7, 32, 33, 100, 128, 129, 100000})
      EXPECT_FALSE(predict(any.features, n, Layout::row_major, precision, any.device).empty())
          << to_string(precision) << " N = " << n;
}

TEST(Selection, LosesNoMoreOnTheRecordedCasesThanWhenItWasFitted) {
  constexpr double kRounding = 0.002;
  EXPECT_LE(mean_regret(0, [](const RecordedCase& one) { return pick_by_prediction(one, 0); }),
            recorded().mean_regret + kRounding);
  for (const auto& [calls, total] : recorded().mean_total)
    EXPECT_LE(
        mean_regret(calls, [&](const RecordedCase& one) { return pick_by_prediction(one, calls); }),
        total + kRounding)
        << calls;
}

TEST(Selection, BeatsAlwaysTakingOneKernel) {
  // Over the cases where that kernel ran.
  for (const std::string& kernel : all_candidates()) {
    const double always = mean_regret(0, [&](const RecordedCase&) { return kernel; });
    const double selected = mean_regret(0, [&](const RecordedCase& one) {
      return one.times_us.contains(kernel) ? pick_by_prediction(one, 0) : std::string();
    });
    EXPECT_GT(always, selected) << kernel;
  }
}

TEST(Selection, TakesWhatIsPreparedSoonerForFewCalls) {
  // What the choice for many calls would take in all when it is made for ten.
  const auto many = [](const RecordedCase& one) { return pick_by_prediction(one, 1'000'000'000); };
  const auto few = [](const RecordedCase& one) { return pick_by_prediction(one, 10); };
  EXPECT_LT(2 * mean_regret(10, few), mean_regret(10, many));
}

// Eight rows with nonzeros have the columns of sixteen neighbours where every other row is empty.
TEST(Selection, WindowsAreThoseOfRowsWithNonzeros) {
  MatrixFeatures f;
  f.rows = f.cols = 8000;
  f.nnz = 80'000;
  f.gathered_8 = 1.0, f.gathered_16 = 0.8, f.gathered_32 = 0.7;
  f.stored_8 = 1.2, f.stored_16 = 1.0, f.stored_32 = 0.9;
  const auto terms = [&](double empty) {
    f.empty_rows = empty;
    return terms_of(f, 64, Layout::row_major, Precision::fp16, recorded().cases.front().device);
  };
  const Terms none = terms(0), few = terms(0.1), half = terms(0.5);
  EXPECT_EQ(few.gather_window, none.gather_window);
  EXPECT_EQ(few.filled_rows, none.rows);
  EXPECT_DOUBLE_EQ(half.filled_rows, none.rows / 2);
  EXPECT_DOUBLE_EQ(half.gather_window, 0.8 * none.gather_window);
  EXPECT_LT(half.tiles, none.tiles);
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
        predict(f, 64, Layout::row_major, Precision::fp16, recorded().cases.front().device);
    return std::ranges::find(all, "two_four", &Candidate::name) != all.end();
  };
  EXPECT_TRUE(is_candidate(2));
  EXPECT_FALSE(is_candidate(3));
}

TEST(Selection, PredictsWhereAllSampledRowsAreEmpty) {
  MatrixFeatures f;
  f.rows = f.cols = 1e6;
  f.nnz = 100;
  f.gathered_8 = f.gathered_16 = f.gathered_32 = f.stored_8 = f.stored_16 = f.stored_32 = 1;
  f.empty_rows = 1;
  for (const std::int64_t n : {1, 64, 512})
    for (const Candidate& one :
         predict(f, n, Layout::row_major, Precision::fp16, recorded().cases.front().device))
      EXPECT_TRUE(std::isfinite(one.prediction.us)) << one.name << ", N = " << n;
}

}  // namespace
}  // namespace spmmbench
