// Selection replayed on the recorded cases that its coefficients were made from
// (results/selection/cases.json, written by scripts/fit_selection.py).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "select/predict.hpp"

namespace spmmbench {
namespace {

struct Case {
  std::string name;
  std::int64_t n = 0;
  Precision precision = Precision::fp16;
  MatrixFeatures features;
  DeviceModel device;
  std::map<std::string, double> times_us, predicted_us;
};

struct Recorded {
  double mean_regret = 0;
  std::vector<Case> cases;
};

const Recorded& recorded() {
  static const Recorded all = [] {
    std::ifstream file(std::string(SPMMBENCH_SOURCE_DIR) + "/results/selection/cases.json");
    const auto document = nlohmann::json::parse(file);
    Recorded out{document.at("mean_regret"), {}};
    for (const auto& entry : document.at("cases")) {
      Case one;
      one.name = entry.at("matrix");
      one.n = entry.at("n");
      one.precision = parse_precision(entry.at("precision").get<std::string>());
      for (const auto& [name, value] : entry.at("features").items())
        set_feature(one.features, name, value);
      const auto& device = entry.at("device");
      one.device = {device.at("memory"), device.at("gather"), device.at("flops"), device.at("l2"),
                    device.at("sms")};
      one.times_us = entry.at("times_us");
      one.predicted_us = entry.at("predicted_us");
      out.cases.push_back(std::move(one));
    }
    return out;
  }();
  return all;
}

double fastest(const Case& one) {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [kernel, us] : one.times_us) least = std::min(least, us);
  return least;
}

// Geometric mean over the cases of the picked kernel's time over the fastest's. Cases where
// pick(case) names no kernel that ran are left out.
template <class Pick>
double mean_regret(const Pick& pick) {
  double sum = 0;
  int count = 0;
  for (const Case& one : recorded().cases) {
    const auto picked = one.times_us.find(pick(one));
    if (picked == one.times_us.end()) continue;
    sum += std::log(picked->second / fastest(one));
    ++count;
  }
  return std::exp(sum / count);
}

std::string pick_by_prediction(const Case& one) {
  std::string best;
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [kernel, us] : one.times_us) {
    const auto prediction = predict(kernel, one.features, one.n, one.precision, one.device);
    if (!prediction || prediction->rank_us >= least) continue;
    least = prediction->rank_us;
    best = kernel;
  }
  return best;
}

TEST(Selection, PredictsWhatTheFitPredicted) {
  constexpr double kRounding = 1e-3;  // of the coefficients as written, five digits
  for (const Case& one : recorded().cases)
    for (const auto& [kernel, us] : one.predicted_us) {
      const auto prediction = predict(kernel, one.features, one.n, one.precision, one.device);
      ASSERT_TRUE(prediction) << kernel;
      EXPECT_NEAR(prediction->us, us, kRounding * us)
          << one.name << " N = " << one.n << " " << kernel;
    }
}

TEST(Selection, HasACandidateForEveryNAndPrecision) {
  const Case& one = recorded().cases.front();
  for (const Precision precision :
       {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16})
    for (const std::int64_t n : {1, 2, 7, 32, 33, 100, 128, 129, 100000}) {
      const auto known = candidates(precision);
      EXPECT_TRUE(
          std::any_of(known.begin(), known.end(),
                      [&](const std::string& name) {
                        return predict(name, one.features, n, precision, one.device).has_value();
                      }))
          << to_string(precision) << " N = " << n;
    }
}

TEST(Selection, LosesNoMoreOnTheRecordedCasesThanWhenItWasFitted) {
  constexpr double kRounding = 0.002;
  EXPECT_LE(mean_regret(pick_by_prediction), recorded().mean_regret + kRounding);
}

TEST(Selection, BeatsAlwaysTakingOneKernel) {
  // Over the cases where that kernel ran.
  for (const std::string& kernel : candidates(Precision::fp16)) {
    const double always = mean_regret([&](const Case&) { return kernel; });
    const double selected = mean_regret([&](const Case& one) {
      return one.times_us.contains(kernel) ? pick_by_prediction(one) : std::string();
    });
    EXPECT_GT(always, selected) << kernel;
  }
}

}  // namespace
}  // namespace spmmbench
