// Documents against documents: which case gets which verdict, what is refused, what is shown.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "report/comparison.hpp"
#include "report/junit.hpp"
#include "spmmbench/error.hpp"
#include "stats/quantiles.hpp"

namespace spmmbench {
namespace {

ResultRow row_of(const std::string& kernel, double us) {
  ResultRow row;
  row.matrix = {"m", "m.mtx", std::string(64, 'a'), 10, 10, 20, 2, 0, 2};
  row.n = 128;
  row.kernel = kernel;
  row.precision = "fp16";
  row.c_type = "fp32";
  row.layout = "row";
  row.reorder = "none";
  row.status = Status::ok;
  std::vector<double> samples;
  for (int i = 0; i < 30; ++i) samples.push_back(us * (1 + 0.001 * (i * 7 % 11)));
  row.hot = summarise(samples, 1);
  for (double& sample : samples) sample *= 2;
  row.cold = summarise(samples, 1);
  return row;
}

ResultRow broken_row(const std::string& kernel, Status status, const std::string& reason) {
  ResultRow row = row_of(kernel, 1);
  row.status = status;
  row.reason = reason;
  row.hot.reset();
  row.cold.reset();
  return row;
}

InputDocument document_of(std::vector<ResultRow> rows) {
  InputDocument input{"x.json", {}};
  input.document.context.device.name = "GPU";
  input.document.context.device.kind = DeviceKind::cuda;
  input.document.context.protocol = {{"noise_limit", "0.01"}};
  input.document.context.git_revision = "abc";
  input.document.rows = std::move(rows);
  input.document.complete = true;
  return input;
}

Comparison compare(std::vector<ResultRow> base, std::vector<ResultRow> fresh,
                   const ComparisonOptions& options = {}) {
  return compare_documents({document_of(std::move(base))}, {document_of(std::move(fresh))},
                           options);
}

CaseVerdict verdict_of(const Comparison& comparison, const std::string& kernel) {
  for (const ComparedCase& one : comparison.cases)
    if (one.row.kernel == kernel) return one.verdict;
  throw std::runtime_error("no case " + kernel);
}

TEST(Comparison, EveryCaseGetsItsVerdict) {
  const auto failed = [](const char* kernel) {
    return broken_row(kernel, Status::failed, "cannot build");
  };
  const ResultRow never = broken_row("never ran", Status::skipped, "no CUDA device");
  const Comparison comparison =
      compare({row_of("same", 10), row_of("slow", 10), row_of("fast", 10), row_of("breaks", 10),
               row_of("hangs", 10), row_of("gone", 10), row_of("skips", 10), failed("heals"),
               failed("bad"), never},
              {never, row_of("same", 10), row_of("slow", 10.5), row_of("fast", 9),
               broken_row("breaks", Status::wrong, "error 3 x bound"),
               broken_row("hangs", Status::timeout, "killed"),
               broken_row("skips", Status::skipped, "needs compute capability 9.0"),
               row_of("heals", 10), failed("bad"), row_of("fresh", 10)});
  EXPECT_EQ(verdict_of(comparison, "same"), CaseVerdict::same);
  EXPECT_EQ(verdict_of(comparison, "slow"), CaseVerdict::slower);
  EXPECT_EQ(verdict_of(comparison, "fast"), CaseVerdict::faster);
  EXPECT_EQ(verdict_of(comparison, "breaks"), CaseVerdict::newly_wrong);
  EXPECT_EQ(verdict_of(comparison, "hangs"), CaseVerdict::newly_wrong);
  EXPECT_EQ(verdict_of(comparison, "gone"), CaseVerdict::missing);
  EXPECT_EQ(verdict_of(comparison, "skips"), CaseVerdict::missing);
  EXPECT_EQ(verdict_of(comparison, "heals"), CaseVerdict::fixed);
  EXPECT_EQ(verdict_of(comparison, "bad"), CaseVerdict::not_ok);
  EXPECT_EQ(verdict_of(comparison, "fresh"), CaseVerdict::added);
  EXPECT_EQ(verdict_of(comparison, "never ran"), CaseVerdict::skipped);
  EXPECT_TRUE(comparison.regression());
  EXPECT_NEAR(*comparison.geometric_mean, std::cbrt(1.05 * 0.9), 1e-9);
  EXPECT_EQ(comparison.cases.front().verdict, CaseVerdict::newly_wrong) << "regressions come first";
}

TEST(Comparison, OneRunPerSideSaysNothingOnACpu) {
  const auto on_cpu = [](double us) {
    InputDocument input = document_of({row_of("k", us)});
    input.document.context.device.kind = DeviceKind::host;
    return input;
  };
  const auto verdict = [&](const ComparisonOptions& options) {
    return compare_documents({on_cpu(10)}, {on_cpu(12)}, options).cases.at(0).verdict;
  };
  EXPECT_EQ(verdict({}), CaseVerdict::unclear);
  EXPECT_EQ(verdict({.min_effect = 0.02}), CaseVerdict::slower);
  const Comparison several = compare_documents({on_cpu(10), on_cpu(10), on_cpu(10)},
                                               {on_cpu(12), on_cpu(12), on_cpu(12)}, {});
  EXPECT_EQ(several.cases.at(0).verdict, CaseVerdict::slower);
}

TEST(Comparison, FasterMissingAndNewCasesAreNoRegression) {
  EXPECT_FALSE(
      compare({row_of("a", 10), row_of("b", 10)}, {row_of("a", 9), row_of("c", 1)}).regression());
}

TEST(Comparison, AWrongRunAmongSeveralIsNewlyWrong) {
  const Comparison comparison = compare_documents(
      {document_of({row_of("k", 10)})},
      {document_of({row_of("k", 10)}), document_of({broken_row("k", Status::wrong, "error")})}, {});
  EXPECT_EQ(verdict_of(comparison, "k"), CaseVerdict::newly_wrong);
}

TEST(Comparison, SeveralRunsPerSideArePutTogether) {
  const Comparison comparison =
      compare_documents({document_of({row_of("k", 10)}), document_of({row_of("k", 11)})},
                        {document_of({row_of("k", 10)}), document_of({row_of("k", 11)})}, {});
  EXPECT_EQ(comparison.cases.at(0).base_runs, 2);
  EXPECT_LT(comparison.cases[0].times->base_effective, 20) << "runs that differ are few samples";
  EXPECT_TRUE(comparison.notes.empty());
}

TEST(Comparison, ColdTimesOnDemand) {
  const Comparison comparison = compare({row_of("k", 10)}, {row_of("k", 10)}, {.cold = true});
  EXPECT_NEAR(comparison.cases.at(0).times->base_us, 20.1, 0.05);
}

TEST(Comparison, RefusesWhatIsNotComparableUnlessForced) {
  const InputDocument base = document_of({row_of("k", 10)});
  InputDocument device = base, seed = base, protocol = base, precision = base, other = base;
  device.document.context.device.name = "another";
  seed.document.context.seed = 7;
  protocol.document.context.protocol["noise_limit"] = "0.1";
  precision.document.rows[0].precision = "tf32";
  other.document.rows[0].kernel = "other";
  for (const InputDocument& fresh : {device, seed, protocol, precision, other}) {
    try {
      compare_documents({base}, {fresh}, {});
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::not_comparable) << error.what();
    }
  }
  for (const InputDocument& fresh : {device, seed, protocol})
    EXPECT_NO_THROW(compare_documents({base}, {fresh}, {.force = true}));
  protocol.document.context.protocol = {{"noise_limit", "0.01"}, {"isolated", "yes"}};
  EXPECT_NO_THROW(compare_documents({base}, {protocol}, {}));
}

TEST(Comparison, TheTableIsAtMostAHundredColumnsWide) {
  ResultRow slow = row_of(std::string(80, 'k'), 1e8), fast = slow;
  fast.hot = summarise(std::vector<double>(20, 1e7), 1);
  ResultRow wrong = broken_row("w", Status::wrong, std::string(200, 'r'));
  const Comparison comparison = compare({fast, row_of("w", 10)}, {slow, wrong});
  std::istringstream lines(format_comparison(comparison, true));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
}

TEST(Comparison, SameCasesAreShownOnDemandOnly) {
  const Comparison comparison = compare({row_of("dull", 10)}, {row_of("dull", 10)});
  const std::string brief = format_comparison(comparison, false);
  EXPECT_EQ(brief.find("dull"), std::string::npos) << brief;
  EXPECT_NE(format_comparison(comparison, true).find("dull"), std::string::npos);
  EXPECT_NE(brief.find("1 SAME"), std::string::npos);
}

TEST(Comparison, JsonHasEveryCase) {
  const auto json = to_json(compare({row_of("slow", 10)}, {row_of("slow", 12)}));
  EXPECT_EQ(json.at("regression"), true);
  EXPECT_EQ(json.at("counts").at("SLOWER"), 1);
  EXPECT_EQ(json.at("cases").at(0).at("verdict"), "SLOWER");
  EXPECT_NEAR(json.at("cases").at(0).at("times").at("ratio").get<double>(), 1.2, 1e-9);
}

TEST(Junit, FailsRegressionsSkipsTheUnclearAndEscapes) {
  ResultRow odd = row_of("a<b>&\"c\"", 10), slower = odd;
  slower.hot = row_of("x", 12).hot;
  const std::string xml =
      format_junit(compare({odd, row_of("gone", 10)}, {slower, row_of("added", 1)}));
  EXPECT_NE(xml.find("tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""), std::string::npos);
  EXPECT_NE(xml.find("a&lt;b&gt;&amp;&quot;c&quot;"), std::string::npos);
  EXPECT_NE(xml.find("<failure type=\"SLOWER\" message=\"1.200 times"), std::string::npos);
}

class CalibrationTest : public ::testing::Test {
 protected:
  CalibrationTest() {
    RunContext context;
    context.device.name = "GPU";
    context.protocol = {{"noise_limit", "0.01"}};
    calibration_ = Calibration(context);
    for (const double factor : {1.0, 1.01, 0.99, 1.005, 0.995}) {
      calibration_.add(comparison_key(row_of("steady", 0)), 10);
      calibration_.add(comparison_key(row_of("shaky", 0)), 10 * factor);
    }
  }
  Calibration calibration_{RunContext{}};
};

TEST_F(CalibrationTest, TheSmallestChangeFollowsTheSpreadOfRepeatedRuns) {
  const std::string shaky = comparison_key(row_of("shaky", 0));
  const std::string steady = comparison_key(row_of("steady", 0));
  const double deviation = 0.0079;  // of the five logarithms above
  EXPECT_NEAR(calibration_.min_effect(shaky, 1), std::expm1(4 * std::sqrt(2) * deviation), 1e-3);
  EXPECT_LT(calibration_.min_effect(steady, 1), calibration_.min_effect(shaky, 1));
  EXPECT_GT(calibration_.min_effect(steady, 1), 0.02) << "one case's luck is not trusted";
  EXPECT_LT(calibration_.min_effect(shaky, 7), calibration_.min_effect(shaky, 1) / 2.5);
  EXPECT_EQ(calibration_.min_effect("unknown", 1), calibration_.min_effect());
  EXPECT_EQ(Calibration(RunContext{}).min_effect(), 0.005);
}

TEST_F(CalibrationTest, DecidesWhatCounts) {
  const std::vector<ResultRow> base = {row_of("shaky", 10)}, fresh = {row_of("shaky", 10.4)};
  EXPECT_EQ(compare(base, fresh).cases[0].verdict, CaseVerdict::slower);
  ComparisonOptions options;
  options.calibration = calibration_;
  EXPECT_EQ(compare(base, fresh, options).cases[0].verdict, CaseVerdict::same);
  options.min_effect = 0.02;
  EXPECT_EQ(compare(base, fresh, options).cases[0].verdict, CaseVerdict::slower);
}

TEST_F(CalibrationTest, SurvivesItsFile) {
  const std::string path = std::filesystem::temp_directory_path() /
                           ("spmmbench-calibration-" + std::to_string(getpid()));
  calibration_.write(path);
  const Calibration again = Calibration::read(path);
  const std::string shaky = comparison_key(row_of("shaky", 0));
  EXPECT_DOUBLE_EQ(again.min_effect(shaky, 1), calibration_.min_effect(shaky, 1));
  EXPECT_EQ(again.context().device.name, "GPU");
  std::filesystem::remove(path);
  EXPECT_THROW(Calibration::read(path), Error);
  EXPECT_THROW(calibration_.write("/no/such/folder/x"), Error);
}

}  // namespace
}  // namespace spmmbench
