// What is shown of a comparison, what is made of it for CI, and the calibration of a machine.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "compared_rows.hpp"
#include "io_fixtures.hpp"
#include "report/calibration.hpp"
#include "report/identity.hpp"
#include "report/junit.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

TEST(ComparisonText, NamesWhatDistinguishesACase) {
  ResultRow row = row_of("rsh", 10);
  row.reorder = "rcm";
  row.c_type = "fp16";
  row.layout = "col";
  row.n = 8;
  const ResultRow plain = row_of("l", 10);
  const std::string text = format_comparison(compare({row, plain}, {row, plain}), true);
  EXPECT_NE(text.find("m n=8 fp16 rsh [rcm] C fp16 column-major "), std::string::npos) << text;
  EXPECT_NE(text.find("m n=128 fp16 l  "), std::string::npos) << text;
}

TEST(ComparisonText, HidesSkippedCasesAndSaysHowSmallASlowdownIsSeen) {
  const ResultRow skipped = broken_row("no", Status::skipped, "no CUDA device");
  const Comparison comparison = compare({row_of("k", 10), skipped}, {row_of("k", 12), skipped});
  const std::string text = format_comparison(comparison, false);
  EXPECT_EQ(text.find("m n=128 fp16 no"), std::string::npos) << text;
  const double seen = comparison.cases.at(0).times->decision.resolution;
  EXPECT_NE(text.find(fmt::format(" {:.1f} SLOWER\n", seen * 100)), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\nREGRESSION: 1 SLOWER case\n")) << text;
}

TEST(ComparisonText, WhatNothingShowsIsMoreThanAnyNumberAndHasNoLimitToName) {
  std::vector<InputDocument> runs = {document_of({row_of("k", 10)})};
  runs[0].document.context.device.kind = DeviceKind::host;
  const std::string text = format_comparison(compare_documents(runs, runs, {}), true);
  EXPECT_NE(text.find(" >999 NOT ABLE TO TELL\n"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\n  remedy: more runs of each side, as scripts/perf_gate takes\n"))
      << text;
}

TEST(ComparisonText, TheLimitsOfTheRemedyAreEnoughAndNoneIsNamedInVain) {
  const std::vector<ResultRow> rows = {row_of("k", 10), row_of("l", 10), row_of("m", 10)};
  const auto remedy = [&](const ComparisonOptions& options) {
    const std::string text = format_comparison(compare_single_runs(rows, rows, options), false);
    const std::size_t at = text.find("  remedy: ");
    return at == std::string::npos ? std::string() : text.substr(at);
  };
  const auto number_after = [](const std::string& text, const std::string& option) {
    return std::stod(text.substr(text.find(option) + option.size()));
  };
  const std::string both = remedy({.resolve = 0.001});
  EXPECT_EQ(remedy({.resolve = number_after(both, "--resolve "),
                    .resolve_case = number_after(both, "--resolve-case ")}),
            "")
      << both;
  EXPECT_EQ(remedy({.resolve = 0.5, .resolve_case = 0.1}).find("--resolve "), std::string::npos);
  EXPECT_EQ(remedy({.resolve = 0.001, .resolve_case = 0.5}).find("--resolve-case"),
            std::string::npos);
}

TEST(ComparisonText, TheRemedyHasAsManyRunsAsTheWorstCaseNeeds) {
  // Levels of two runs of each side, far enough apart for the first case to need more of them.
  const auto runs = [](double far, double near) {
    return std::vector<InputDocument>{
        document_of({row_of("far", 10), row_of("near", 10)}),
        document_of({row_of("far", 10 * far), row_of("near", 10 * near)})};
  };
  const auto needed = [&](double far, double near) {
    const std::string text = format_comparison(
        compare_documents(runs(far, near), runs(far, near), {.resolve = 0.1}), false);
    const std::string before = "remedy: about ";
    const std::size_t at = text.find(before);
    return at == std::string::npos ? 0 : std::stoi(text.substr(at + before.size()));
  };
  EXPECT_EQ(needed(1.06, 1.03), needed(1.03, 1.06));
  EXPECT_GT(needed(1.06, 1.03), needed(1.03, 1.03));
  EXPECT_EQ(needed(3, 1.03), 0) << "more than a hundred help no more";
  EXPECT_EQ(needed(1.03, 3), 0);
}

TEST(ComparisonText, SaysThatNothingWasTimed) {
  const ResultRow skipped = broken_row("k", Status::skipped, "no CUDA device");
  EXPECT_TRUE(format_comparison(compare({skipped}, {skipped}), false)
                  .ends_with("\nNOT ABLE TO TELL: no case was timed on both sides\n"));
}

TEST(ComparisonText, WhatWouldHaveBeenSeenIsNamedForMeansAndCases) {
  const std::vector<ResultRow> rows = {row_of("k", 10)};
  const ComparisonOptions options = {.resolve = 0.05, .resolve_case = 0.25};
  EXPECT_NE(format_comparison(compare(rows, rows, options), false)
                .find("\nno regression; slowdowns of 5 % of a geometric mean, 25 % of a case"),
            std::string::npos);
}

TEST(Comparison, AlphaIsSharedByMeansAndCasesAndTheMinimumEffectCountsForBoth) {
  EXPECT_EQ(alpha_share({.alpha = 0.01}), 0.005);
  const std::vector<ResultRow> rows = {row_of("k", 10), row_of("l", 10)};
  const Comparison comparison = compare_single_runs(rows, rows, {.min_effect = 0.1});
  EXPECT_NEAR(comparison.groups.at(0).shift.margin, 1.1 * 1.02 - 1, 1e-12);
  EXPECT_NEAR(comparison.cases.at(0).times->shift.margin, 1.1 * 1.25 - 1, 1e-12);
}

TEST(Junit, FailsRegressionsAndLossesAndEscapes) {
  ResultRow odd = row_of("a<b>&\"c\"", 10), slower = odd;
  slower.hot = row_of("x", 12).hot;
  const std::string xml =
      format_junit(compare({odd, row_of("gone", 10)}, {slower, row_of("added", 1)}));
  EXPECT_NE(xml.find("tests=\"3\" failures=\"2\" errors=\"0\" skipped=\"0\""), std::string::npos);
  EXPECT_NE(xml.find("a&lt;b&gt;&amp;&quot;c&quot;"), std::string::npos);
  EXPECT_NE(xml.find("<failure type=\"SLOWER\" message=\"1.200 times"), std::string::npos);
  EXPECT_NE(xml.find("<failure type=\"MISSING\" message=\"no row in NEW\""), std::string::npos);
}

TEST(Junit, WhatCannotBeToldIsOneErrorAndGeometricMeansAreTests) {
  const std::vector<ResultRow> rows = {row_of("k", 10), row_of("l", 10)};
  const std::string xml = format_junit(compare_single_runs(rows, rows));
  EXPECT_NE(xml.find("tests=\"4\" failures=\"0\" errors=\"1\" skipped=\"3\""), std::string::npos)
      << xml;
  EXPECT_NE(xml.find("classname=\"geometric mean\" name=\"all all cases\""), std::string::npos);
  EXPECT_NE(xml.find("<error type=\"NOT ABLE TO TELL\" message=\"of 1 geometric mean and 2 "),
            std::string::npos);
}

TEST(Junit, AComparisonOfNothingIsAnError) {
  const ResultRow failed = broken_row("k", Status::failed, "cannot build"), well = row_of("k", 10);
  const Comparison healed = compare({failed}, {well});
  EXPECT_EQ(healed.exit_code(), ExitCode::not_able_to_tell);
  const std::string xml = format_junit(healed);
  EXPECT_NE(xml.find("tests=\"2\" failures=\"0\" errors=\"1\" skipped=\"0\""), std::string::npos)
      << xml;
  EXPECT_NE(
      xml.find("<error type=\"NOT ABLE TO TELL\" message=\"no case was timed on both sides\"/>"),
      std::string::npos)
      << xml;
  EXPECT_EQ(format_junit(compare({well}, {failed})).find("<error"), std::string::npos)
      << "that is a regression";
}

class CalibrationTest : public ::testing::Test {
 protected:
  CalibrationTest() {
    RunContext context;
    context.device.name = "GPU";
    context.argv = {"spmmbench"};
    context.copy_gb_per_s = 1;
    context.protocol = {{"noise_limit", "0.01"}};
    calibration_ = Calibration(context);
    for (const double factor : {1.0, 1.01, 0.99, 1.005, 0.995}) {
      calibration_.add(case_key(row_of("steady", 0)), 10);
      calibration_.add(case_key(row_of("shaky", 0)), 10 * factor);
    }
  }
  Calibration calibration_{RunContext{}};
};

TEST_F(CalibrationTest, ResolvesWhatItsRepeatedRunsLetIt) {
  // Half of the cases have a deviation of 0.0079, that of the five logarithms; the others have
  // none.
  EXPECT_NEAR(calibration_.resolution(), std::expm1(4 * 0.0079), 1e-3);
  EXPECT_EQ(calibration_.medians_us(case_key(row_of("shaky", 0))).size(), 5U);
  EXPECT_TRUE(calibration_.medians_us("unknown").empty());
}

TEST_F(CalibrationTest, AMachineThatResolvesNothingIsRefusedWithAdvice) {
  EXPECT_NO_THROW(calibration_.require_usable("cal.json"));
  for (const double us : {1.0, 2.0, 9.0, 40.0}) calibration_.add("a very shaky case", us);
  try {
    calibration_.require_usable("cal.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::not_able_to_tell);
    EXPECT_NE(std::string(error.what()).find("cal.json: one run against another resolves "),
              std::string::npos);
    EXPECT_NE(std::string(error.what()).find("fix its clocks"), std::string::npos);
  }
}

TEST_F(CalibrationTest, ShowsWhatOneRunOfEachSideCannot) {
  const auto verdict = [&](const char* kernel, double us, bool calibrated) {
    ComparisonOptions options;
    if (calibrated) options.calibration = calibration_;
    return compare_single_runs({row_of(kernel, 10)}, {row_of(kernel, us)}, options)
        .cases[0]
        .verdict;
  };
  EXPECT_EQ(verdict("steady", 10.4, false), CaseVerdict::not_able_to_tell);
  EXPECT_EQ(verdict("steady", 10.4, true), CaseVerdict::slower);
  EXPECT_EQ(verdict("steady", 10, true), CaseVerdict::same);
  EXPECT_EQ(verdict("shaky", 10.4, true), CaseVerdict::not_able_to_tell);
  EXPECT_EQ(verdict("unknown", 10.4, true), CaseVerdict::not_able_to_tell);
}

TEST_F(CalibrationTest, RunsOfACaseDifferAsItsRepeatedRunsDid) {
  ComparisonOptions options;
  options.calibration = calibration_;
  const Comparison comparison =
      compare_single_runs({row_of("shaky", 10)}, {row_of("shaky", 10)}, options);
  EXPECT_NEAR(comparison.cases[0].times->shift.run_deviation, 0.0079, 1e-4);
  EXPECT_TRUE(comparison.notes.empty());
}

TEST_F(CalibrationTest, CasesWithOtherNumbersOfRepeatedRunsAreAveragedWithoutThem) {
  for (const double us : {10.0, 10.1}) calibration_.add(case_key(row_of("few", 0)), us);
  ComparisonOptions options;
  options.calibration = calibration_;
  const std::vector<ResultRow> rows = {row_of("steady", 10), row_of("few", 10)};
  EXPECT_EQ(compare_single_runs(rows, rows, options).groups.at(0).shift.freedom, 1);
  const std::vector<ResultRow> alike = {row_of("steady", 10), row_of("shaky", 10)};
  EXPECT_EQ(compare_single_runs(alike, alike, options).groups.at(0).shift.freedom, 4);
}

TEST_F(CalibrationTest, CasesDifferInTheirMatrixShapeKernelTypesAndOrder) {
  std::set<std::string> keys;
  std::vector<ResultRow> rows(9, row_of("k", 10));
  rows[1].matrix.name = "other";
  rows[2].matrix.sha256 = std::string(64, 'b');
  rows[3].n = 64;
  rows[4].kernel = "l";
  rows[5].precision = "bf16";
  rows[6].c_type = "fp16";
  rows[7].layout = "col";
  rows[8].reorder = "rcm";
  for (const ResultRow& row : rows) keys.insert(case_key(row));
  EXPECT_EQ(keys.size(), rows.size());
}

TEST_F(CalibrationTest, KeepsTwoRowsOfTheSameMatrixApart) {
  ComparisonKeys keys;
  const std::string first = keys.next(row_of("k", 10));
  EXPECT_EQ(first, case_key(row_of("k", 10)));
  EXPECT_EQ(keys.next(row_of("k", 10)), first + "|2");
  EXPECT_NE(keys.next(row_of("l", 10)), first);
}

TEST_F(CalibrationTest, SurvivesItsFile) {
  const std::string path = std::filesystem::temp_directory_path() /
                           ("spmmbench-calibration-" + std::to_string(getpid()));
  OutputFile file(path);
  calibration_.write(file);
  const Calibration again = Calibration::read(path);
  const std::string shaky = case_key(row_of("shaky", 0));
  EXPECT_EQ(again.medians_us(shaky), calibration_.medians_us(shaky));
  EXPECT_EQ(again.context().device.name, "GPU");
  std::filesystem::remove(path);
  EXPECT_THROW(Calibration::read(path), Error);
}

TEST_F(CalibrationTest, WithATimeThatIsNotPositiveIsRefused) {
  const test::ScratchFolder folder;
  for (const double us : {0.0, -1.0}) {
    Calibration bad = calibration_;
    bad.add("k", us);
    OutputFile file(folder.file("bad.json"));
    bad.write(file);
    EXPECT_TRUE(test::contains(test::error_of([&] { Calibration::read(folder.file("bad.json")); }),
                               "bad.json: medians_us: expected positive times"));
  }
}

TEST_F(CalibrationTest, OfAnotherVersionOrWithoutRepeatedRunsIsRefused) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("cal.json");
  const auto refusal = [&](const Calibration& calibration, const std::string& version) {
    OutputFile file(path);
    calibration.write(file);
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    std::string changed = text.str();
    const std::string of_now = "\"calibration_version\": 2";
    changed.replace(changed.find(of_now), of_now.size(), "\"calibration_version\": " + version);
    std::ofstream(path) << changed;
    return test::error_of([&] { Calibration::read(path); });
  };
  for (const char* version : {"1", "99", "\"two\""})
    EXPECT_EQ(refusal(calibration_, version),
              fmt::format("{}: calibration version {}, expected 2", path, version));
  Calibration one(calibration_.context());
  EXPECT_TRUE(test::contains(refusal(one, "2"), "cal.json: no case has two times"));
  one.add("k", 10);
  EXPECT_FALSE(one.shows_spread());
  EXPECT_TRUE(test::contains(refusal(one, "2"), "cal.json: no case has two times"));
}

TEST_F(CalibrationTest, OfOneRepetitionShowsNoDifference) {
  Calibration one(calibration_.context());
  EXPECT_EQ(one.resolution(), 0);
  one.add("k", 10);
  EXPECT_EQ(one.resolution(), 0);
}

}  // namespace
}  // namespace spmmbench
