// Documents against documents: which case gets which verdict, what is refused, what is shown.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <map>
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

// Five runs of the same rows, whose levels differ by a tenth of a percent.
std::vector<InputDocument> five_runs(const std::vector<ResultRow>& rows) {
  std::vector<InputDocument> runs;
  for (const double level : {1.0, 1.001, 0.999, 1.0005, 0.9995}) {
    runs.push_back(document_of(rows));
    for (ResultRow& row : runs.back().document.rows)
      for (std::optional<Timing>* timing : {&row.hot, &row.cold})
        if (*timing)
          for (double& us : (*timing)->samples_us) us *= level;
  }
  return runs;
}

Comparison compare(const std::vector<ResultRow>& base, const std::vector<ResultRow>& fresh,
                   const ComparisonOptions& options = {}) {
  return compare_documents(five_runs(base), five_runs(fresh), options);
}

Comparison compare_single_runs(const std::vector<ResultRow>& base,
                               const std::vector<ResultRow>& fresh,
                               const ComparisonOptions& options = {}) {
  return compare_documents({document_of(base)}, {document_of(fresh)}, options);
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
  EXPECT_NEAR(comparison.groups.at(0).shift.ratio(), std::cbrt(1.05 * 0.9), 1e-9);
  EXPECT_EQ(comparison.cases.front().verdict, CaseVerdict::newly_wrong) << "regressions come first";
}

TEST(Comparison, OneRunPerSideSaysNothingOnACpu) {
  const auto runs_on_cpu = [](double us, std::size_t count) {
    std::vector<InputDocument> runs = five_runs({row_of("k", us), row_of("l", us)});
    runs.resize(count);
    for (InputDocument& run : runs) run.document.context.device.kind = DeviceKind::host;
    return runs;
  };
  const Comparison single = compare_documents(runs_on_cpu(10, 1), runs_on_cpu(50, 1), {});
  EXPECT_EQ(single.cases.at(0).verdict, CaseVerdict::not_able_to_tell);
  EXPECT_EQ(single.groups.at(0).decision.change, Change::not_able_to_tell);
  EXPECT_EQ(single.exit_code(), ExitCode::not_able_to_tell);
  const Comparison several = compare_documents(runs_on_cpu(10, 5), runs_on_cpu(12, 5), {});
  EXPECT_EQ(several.cases.at(0).verdict, CaseVerdict::slower);
}

TEST(Comparison, OneRunPerSideOfAGpuTellsLargeChangesOnly) {
  const auto verdict = [](double us) {
    return compare_single_runs({row_of("k", 10)}, {row_of("k", us)}).cases.at(0).verdict;
  };
  EXPECT_EQ(verdict(10.5), CaseVerdict::not_able_to_tell);
  EXPECT_EQ(verdict(12), CaseVerdict::not_able_to_tell);
  EXPECT_EQ(verdict(50), CaseVerdict::slower);
}

TEST(Comparison, AKernelSlowerInManyCasesIsSlowerEvenWhereNoCaseTells) {
  const auto rows = [](double us) {
    std::vector<ResultRow> rows;
    for (int n = 1; n <= 40; ++n)
      for (const char* kernel : {"async_wcsr", "async_bcsr", "rsh"}) {
        rows.push_back(row_of(kernel, std::string(kernel) == "rsh" ? us : 10));
        rows.back().n = n;
      }
    return rows;
  };
  const Comparison comparison = compare_single_runs(rows(10), rows(10.5));
  EXPECT_EQ(comparison.count(CaseVerdict::slower), 0);
  std::map<std::string, Change> changes;
  for (const ComparedGroup& group : comparison.groups)
    if (group.kind != "all") changes[group.kind + " " + group.name] = group.decision.change;
  EXPECT_EQ(changes, (std::map<std::string, Change>{
                         {"family async", Change::same},
                         {"kernel fp16 async_bcsr", Change::same},
                         {"kernel fp16 async_wcsr", Change::same},
                         {"kernel fp16 rsh", Change::slower},
                     }));
  EXPECT_EQ(comparison.exit_code(), ExitCode::regression);
}

TEST(Comparison, ASlowdownThatCouldGoUnseenIsNeverSuccess) {
  EXPECT_EQ(compare({row_of("k", 10)}, {row_of("k", 10)}).exit_code(), ExitCode::ok);
  EXPECT_EQ(compare_single_runs({row_of("k", 10)}, {row_of("k", 10)}).exit_code(),
            ExitCode::not_able_to_tell);
  EXPECT_EQ(compare_single_runs({row_of("k", 10)}, {row_of("k", 10)}, {.resolve = 0.5}).exit_code(),
            ExitCode::ok);
  EXPECT_EQ(
      compare_single_runs({row_of("k", 10)}, {row_of("k", 10)}, {.resolve_case = 0.5}).exit_code(),
      ExitCode::ok);
  const ResultRow skipped = broken_row("k", Status::skipped, "no CUDA device");
  EXPECT_EQ(compare({skipped}, {skipped}).exit_code(), ExitCode::not_able_to_tell)
      << "nothing was compared";
}

TEST(Comparison, FasterFixedAndNewCasesAreNoRegression) {
  EXPECT_FALSE(compare({row_of("a", 10), broken_row("c", Status::failed, "f")},
                       {row_of("a", 9), row_of("b", 1), row_of("c", 1)})
                   .regression());
}

TEST(Comparison, LostCasesAreARegressionUnlessAllowed) {
  const ResultRow kept = row_of("kept", 10), lost = row_of("lost", 10);
  const ResultRow skipped = broken_row("lost", Status::skipped, "needs compute capability 9.0");
  const ResultRow failed = broken_row("lost", Status::failed, "cannot build");
  const auto reason = [](const Comparison& comparison) { return comparison.cases.at(0).reason; };
  for (const bool allowed : {false, true}) {
    const ComparisonOptions options = {.allow_missing = allowed};
    const Comparison vanished = compare({kept, lost}, {kept}, options);
    const Comparison skips = compare({kept, lost}, {kept, skipped}, options);
    const Comparison still_failing = compare({kept, failed}, {kept, failed}, options);
    for (const Comparison* one : {&vanished, &skips, &still_failing}) {
      EXPECT_EQ(one->regression(), !allowed);
      const std::string shown = format_comparison(*one, false), xml = format_junit(*one);
      EXPECT_NE(shown.find("m n=128 fp16 lost"), std::string::npos) << shown;
      EXPECT_NE(xml.find(allowed ? "<skipped message=\"" : "<failure type=\""), std::string::npos)
          << xml;
    }
    EXPECT_EQ(reason(vanished), "no row in NEW");
    EXPECT_EQ(reason(skips), "skipped: needs compute capability 9.0");
    EXPECT_EQ(reason(still_failing), "failed: cannot build");
    EXPECT_TRUE(compare({kept, lost}, {kept, failed}, options).regression()) << "newly failing";
  }
}

TEST(Comparison, CasesThatAreAlikeStandInTheOrderOfN) {
  std::vector<ResultRow> rows(4, row_of("rsh", 10));
  for (std::size_t i = 0; i < 3; ++i) rows[i].n = 16 >> (2 * i);
  const Comparison comparison = compare(rows, {rows[3]});
  std::vector<std::int64_t> lost;
  for (const ComparedCase& one : comparison.cases)
    if (one.verdict == CaseVerdict::missing) lost.push_back(one.row.n);
  EXPECT_EQ(lost, (std::vector<std::int64_t>{1, 4, 16}));
}

TEST(Comparison, ACaseThatOnlySomeRunsHoldIsMissing) {
  std::vector<InputDocument> fresh = five_runs({row_of("kept", 10), row_of("lost", 10)});
  fresh[3].document.rows.pop_back();
  const Comparison comparison =
      compare_documents(five_runs({row_of("kept", 10), row_of("lost", 10)}), fresh, {});
  EXPECT_EQ(verdict_of(comparison, "lost"), CaseVerdict::missing);
  EXPECT_EQ(comparison.cases.at(0).reason, "in 4 of 5 runs of NEW");
}

TEST(Comparison, AMatrixThatADocumentHoldsTwiceIsTwoCasesOfOneRun) {
  ResultRow again = row_of("k", 10);
  again.matrix.source = "m.csr";
  const std::vector<ResultRow> twice = {row_of("k", 10), again, row_of("once", 10)};
  std::vector<ResultRow> slower = twice;
  for (ResultRow& row : slower) row.hot = row_of("k", 11.5).hot;
  const Comparison comparison = compare_single_runs(twice, slower);
  ASSERT_EQ(comparison.cases.size(), 3U);
  for (const ComparedCase& one : comparison.cases) {
    EXPECT_EQ(one.base_runs, 1);
    EXPECT_EQ(one.new_runs, 1);
    EXPECT_EQ(one.verdict, CaseVerdict::not_able_to_tell);
  }
  const Comparison lost = compare(twice, {twice[0], twice[2]});
  EXPECT_EQ(lost.count(CaseVerdict::missing), 1);
  EXPECT_EQ(lost.cases.at(0).reason, "no row in NEW");
  EXPECT_EQ(compare(twice, twice).count(CaseVerdict::same), 3) << "the row that is alone too";
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
  EXPECT_EQ(comparison.cases[0].times->shift.freedom, 2) << "a run counts once, not every sample";
  EXPECT_NEAR(comparison.cases[0].times->shift.run_deviation, std::log(1.1) / std::sqrt(2), 1e-6);
  EXPECT_TRUE(comparison.notes.empty());
}

TEST(Comparison, NamesOfFilesAreShownWithoutControlCharacters) {
  InputDocument input = document_of({row_of("k", 10)});
  input.document.complete = false;
  input.path = "\x1b[31m\xff.json";
  const std::string shown = format_comparison(compare_documents({input}, {input}, {}), false);
  EXPECT_NE(shown.find("note: \\x1b[31m\\xff.json is incomplete"), std::string::npos) << shown;
  EXPECT_EQ(shown.find('\x1b'), std::string::npos);
}

TEST(Comparison, TakesColdTimesOnDemand) {
  const Comparison comparison = compare({row_of("k", 10)}, {row_of("k", 10)}, {.cold = true});
  EXPECT_NEAR(comparison.cases.at(0).times->base_us, 20.1, 0.05);
}

TEST(Comparison, RefusesWhatIsNotComparableUnlessForcedAndNamesFileAndField) {
  InputDocument base = document_of({row_of("k", 10)});
  base.path = "old.json";
  InputDocument device = base, processors = base, seed = base, protocol = base, precision = base,
                other = base;
  device.document.context.device.name = "another";
  processors.document.context.device.sm_count = 7;
  seed.document.context.seed = 7;
  protocol.document.context.protocol["noise_limit"] = "0.1";
  precision.document.rows[0].precision = "tf32";
  other.document.rows[0].kernel = "other";
  for (auto& [fresh, field] :
       {std::pair(&device, "device.name differs: 'GPU' and 'another'"),
        std::pair(&processors, "device.sm_count differs: '0' and '7'"),
        std::pair(&seed, "seed differs: '0' and '7'"),
        std::pair(&protocol, "protocol.noise_limit differs: '0.01' and '0.1'"),
        std::pair(&precision, "rows.precision differs: fp16 is in old.json only"),
        std::pair(&other, "no case in common")}) {
    fresh->path = "new.json";
    try {
      compare_documents({base}, {*fresh}, {});
      FAIL() << field;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::not_comparable) << error.what();
      EXPECT_NE(std::string(error.what()).find(field), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("old.json and new.json"), std::string::npos)
          << error.what();
    }
  }
  for (const InputDocument* fresh : {&device, &processors, &seed, &protocol})
    EXPECT_NO_THROW(compare_documents({base}, {*fresh}, {.force = true}));
  protocol.document.context.protocol = {{"noise_limit", "0.01"}, {"isolated", "yes"}};
  EXPECT_NO_THROW(compare_documents({base}, {protocol}, {}));
}

TEST(Comparison, ACalibrationOfAnotherDeviceIsRefusedByItsName) {
  ComparisonOptions options;
  RunContext context = document_of({}).document.context;
  context.device.name = "another";
  options.calibration = Calibration(context);
  options.calibration_path = "cal.json";
  try {
    compare({row_of("k", 10)}, {row_of("k", 10)}, options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "x.json and cal.json: device.name differs: 'GPU' and 'another'");
  }
}

TEST(Comparison, TheTableIsAtMostAHundredColumnsWide) {
  ResultRow slow = row_of(std::string(80, 'k'), 1e8), fast = slow;
  fast.hot = summarise(std::vector<double>(20, 1e7), 1);
  ResultRow wrong = broken_row("w", Status::wrong, std::string(200, 'r'));
  const Comparison regression = compare({fast, row_of("w", 10)}, {slow, wrong});
  const Comparison unable = compare_single_runs({fast, row_of("w", 10)}, {fast, row_of("w", 11)});
  for (const Comparison* comparison : {&regression, &unable}) {
    std::istringstream lines(format_comparison(*comparison, true));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
  }
}

TEST(Comparison, SameCasesAreShownOnDemandOnly) {
  const Comparison comparison = compare({row_of("dull", 10)}, {row_of("dull", 10)});
  const std::string brief = format_comparison(comparison, false);
  EXPECT_EQ(brief.find("dull"), std::string::npos) << brief;
  EXPECT_NE(format_comparison(comparison, true).find("dull"), std::string::npos);
  EXPECT_NE(brief.find("1 SAME"), std::string::npos);
}

TEST(Comparison, ManyCasesThatCannotTellDoNotHideTheRest) {
  std::vector<ResultRow> rows;
  for (int n = 1; n <= 40; ++n) {
    rows.push_back(row_of("k", 10));
    rows.back().n = n;
  }
  const Comparison comparison = compare_single_runs(rows, rows);
  const std::string brief = format_comparison(comparison, false);
  EXPECT_NE(brief.find("... and 30 more that are NOT ABLE TO TELL: --all"), std::string::npos);
  EXPECT_EQ(format_comparison(comparison, true).find("... and"), std::string::npos);
  EXPECT_NE(brief.find("\n  remedy: "), std::string::npos) << brief;
}

TEST(Comparison, JsonHasEveryCase) {
  const auto json = to_json(compare({row_of("slow", 10)}, {row_of("slow", 12)}));
  EXPECT_EQ(json.at("regression"), true);
  EXPECT_EQ(json.at("counts").at("SLOWER"), 1);
  EXPECT_EQ(json.at("cases").at(0).at("verdict"), "SLOWER");
  EXPECT_NEAR(json.at("cases").at(0).at("times").at("ratio").get<double>(), 1.2, 1e-9);
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

TEST(Junit, WhatCannotBeToldIsAnErrorAndGeometricMeansAreTests) {
  const std::vector<ResultRow> rows = {row_of("k", 10), row_of("l", 10)};
  const std::string xml = format_junit(compare_single_runs(rows, rows));
  EXPECT_NE(xml.find("tests=\"3\" failures=\"0\" errors=\"3\" skipped=\"0\""), std::string::npos)
      << xml;
  EXPECT_NE(xml.find("classname=\"geometric mean\" name=\"all all cases\""), std::string::npos);
  EXPECT_NE(xml.find("<error type=\"NOT ABLE TO TELL\""), std::string::npos);
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

TEST_F(CalibrationTest, ResolvesWhatItsRepeatedRunsLetIt) {
  // Half of the cases have a deviation of 0.0079, that of the five logarithms; the others have
  // none.
  EXPECT_NEAR(calibration_.resolution(), std::expm1(4 * 0.0079), 1e-3);
  EXPECT_EQ(calibration_.medians_us(comparison_key(row_of("shaky", 0))).size(), 5U);
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

TEST_F(CalibrationTest, KeepsTwoRowsOfTheSameMatrixApart) {
  ComparisonKeys keys;
  const std::string first = keys.next(row_of("k", 10));
  EXPECT_EQ(first, comparison_key(row_of("k", 10)));
  EXPECT_EQ(keys.next(row_of("k", 10)), first + "|2");
  EXPECT_NE(keys.next(row_of("l", 10)), first);
}

TEST_F(CalibrationTest, SurvivesItsFile) {
  const std::string path = std::filesystem::temp_directory_path() /
                           ("spmmbench-calibration-" + std::to_string(getpid()));
  OutputFile file(path);
  calibration_.write(file);
  const Calibration again = Calibration::read(path);
  const std::string shaky = comparison_key(row_of("shaky", 0));
  EXPECT_EQ(again.medians_us(shaky), calibration_.medians_us(shaky));
  EXPECT_EQ(again.context().device.name, "GPU");
  std::filesystem::remove(path);
  EXPECT_THROW(Calibration::read(path), Error);
}

}  // namespace
}  // namespace spmmbench
