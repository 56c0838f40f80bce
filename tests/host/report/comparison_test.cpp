// Documents against documents: which case gets which verdict, what is refused, what is shown.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "compared_rows.hpp"
#include "plugin/plugin.hpp"
#include "report/comparison.hpp"
#include "report/junit.hpp"
#include "spmmbench/error.hpp"
#include "timing/quantiles.hpp"

namespace spmmbench {
namespace {

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
  const std::vector<ResultRow> two = {row_of("k", 10), row_of("l", 10)};
  EXPECT_EQ(compare_single_runs(two, two, {.resolve = 0.01, .resolve_case = 0.5}).exit_code(),
            ExitCode::not_able_to_tell)
      << "of their geometric mean";
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

TEST(Comparison, ACaseThatOnlySomeRunsOfBothSidesHoldIsCompared) {
  std::vector<InputDocument> base =
      five_runs({row_of("kept", 10), row_of("kept too", 10), row_of("rare", 10)});
  std::vector<InputDocument> fresh = base;
  base[1].document.rows.pop_back();
  fresh[3].document.rows.pop_back();
  const Comparison comparison = compare_documents(base, fresh, {});
  EXPECT_EQ(verdict_of(comparison, "rare"), CaseVerdict::same);
  EXPECT_EQ(comparison.groups.at(0).cases, 3) << "its mean of other runs is averaged with theirs";
}

TEST(Comparison, NewHoldingACaseInFewerRunsThanBaseIsMissingThoughBaseLacksItInSome) {
  std::vector<InputDocument> base = five_runs({row_of("kept", 10), row_of("rare", 10)});
  std::vector<InputDocument> fresh = base;
  base[1].document.rows.pop_back();
  for (const std::size_t run : {1, 2}) fresh[run].document.rows.pop_back();
  const Comparison comparison = compare_documents(base, fresh, {});
  EXPECT_EQ(verdict_of(comparison, "rare"), CaseVerdict::missing);
  EXPECT_EQ(comparison.cases.at(0).reason, "in 3 of 5 runs of NEW");
}

TEST(Comparison, ARowWithoutPositiveTimesHasNone) {
  const auto with_samples = [](std::vector<double> samples_us) {
    ResultRow row = row_of("k", 10);
    row.hot->samples_us = std::move(samples_us);
    return row;
  };
  const double infinity = std::numeric_limits<double>::infinity();
  for (const ResultRow& row : {with_samples({}), with_samples({10, 0}), with_samples({infinity})}) {
    const Comparison lost = compare_single_runs({row_of("k", 10)}, {row});
    EXPECT_EQ(lost.cases.at(0).verdict, CaseVerdict::missing);
    EXPECT_EQ(lost.cases.at(0).reason, "no times in NEW");
    EXPECT_EQ(verdict_of(compare_single_runs({row}, {row_of("k", 10)}), "k"), CaseVerdict::added);
    EXPECT_EQ(verdict_of(compare_single_runs({row}, {row}), "k"), CaseVerdict::skipped);
  }
  ResultRow wrong = row_of("k", 10);
  wrong.status = Status::wrong;
  EXPECT_EQ(verdict_of(compare_single_runs({wrong}, {row_of("k", 10)}), "k"), CaseVerdict::fixed);
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
  for (const Comparison& once :
       {compare(twice, {twice[0], twice[2]}), compare({twice[0], twice[2]}, twice)}) {
    EXPECT_EQ(once.count(CaseVerdict::same), 2) << "the other file has the same matrix";
    EXPECT_EQ(once.cases.size(), 2U);
    EXPECT_EQ(once.notes.back(),
              "left out: 1 row, since only one side measures the case once more in its document");
  }
  const Comparison lost = compare(twice, {twice[2]});
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
  const Comparison slower = compare({row_of("k", 10)}, {row_of("k", 12)});
  EXPECT_NEAR(slower.cases[0].times->base_us, row_of("k", 10).hot->median_us, 0.01);
  EXPECT_NEAR(slower.cases[0].times->new_us, row_of("k", 12).hot->median_us, 0.01);
}

TEST(Comparison, NamesEveryRevisionOfASideOnce) {
  InputDocument clean = document_of({row_of("k", 10)}), changed = clean;
  changed.document.context.git_revision = "abc-dirty";
  const Comparison comparison = compare_documents({changed, clean, changed}, {clean, clean}, {});
  EXPECT_EQ(comparison.base_revision, "abc-dirty, abc");
  EXPECT_EQ(comparison.new_revision, "abc");
}

TEST(Comparison, NamesOfFilesAreShownWithoutControlCharacters) {
  InputDocument input = document_of({row_of("k", 10)});
  input.document.complete = false;
  input.path = "\x1b[31m\xff.json";
  const std::string shown = format_comparison(compare_documents({input}, {input}, {}), false);
  EXPECT_NE(shown.find("note: \\x1b[31m\\xff.json is incomplete"), std::string::npos) << shown;
  EXPECT_EQ(shown.find('\x1b'), std::string::npos);
}

TEST(Comparison, WarnsOfSingleRunsOnBothSidesOnly) {
  const auto runs = [](std::size_t count) {
    std::vector<InputDocument> runs = five_runs({row_of("k", 10)});
    runs.resize(count);
    return runs;
  };
  EXPECT_EQ(compare_documents(runs(1), runs(1), {}).notes.size(), 1U);
  EXPECT_TRUE(compare_documents(runs(1), runs(5), {}).notes.empty());
}

TEST(Comparison, ShowsTheRowOfNewAndTheLargestRatioFirst) {
  ResultRow fresh = row_of("k", 12);
  fresh.command = "the new one";
  const Comparison comparison = compare({row_of("k", 10), row_of("l", 10), row_of("m", 10)},
                                        {fresh, row_of("l", 14), row_of("m", 13)});
  std::vector<std::string> kernels;
  for (const ComparedCase& one : comparison.cases) kernels.push_back(one.row.kernel);
  EXPECT_EQ(kernels, (std::vector<std::string>{"l", "m", "k"}));
  EXPECT_EQ(comparison.cases[2].row.command, "the new one");
  EXPECT_EQ(to_string(Change::unclear), "UNCLEAR");
}

TEST(Comparison, AFamilyIsWhatKernelsAreCalledBeforeTheirOptions) {
  const std::vector<ResultRow> rows = {row_of("rsh", 10), row_of("rsh?tau=4", 10),
                                       row_of("async_wcsr", 10)};
  const Comparison comparison = compare(rows, rows);
  ASSERT_EQ(comparison.groups.size(), 2U);
  EXPECT_EQ(comparison.groups[1].kind + " " + comparison.groups[1].name, "family rsh");
  EXPECT_EQ(comparison.groups[1].cases, 2);
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
  protocol.document.context.protocol = {
      {"noise_limit", "0.01"}, {"isolated", "yes"}, {std::string(kPluginInProtocol) + "mine", "1"}};
  EXPECT_NO_THROW(compare_documents({base}, {protocol}, {}));
  base.document.context.protocol = protocol.document.context.protocol;
  base.document.context.protocol["isolated"] = "no";
  base.document.context.protocol[std::string(kPluginInProtocol) + "mine"] = "2";
  EXPECT_NO_THROW(compare_documents({base}, {protocol}, {}));
  InputDocument more = base;
  more.document.rows.push_back(row_of("k", 10));
  more.document.rows.back().precision = "tf32";
  EXPECT_THROW(compare_documents({base}, {more}, {}), Error);
  EXPECT_NO_THROW(compare_documents({base}, {more}, {.force = true}));
}

TEST(Comparison, RefusesColdTimesOfAnotherSizeOfCache) {
  InputDocument base = document_of({row_of("k", 10)}), other = base;
  base.document.context.device.l2_bytes = 50;
  other.document.context.device.l2_bytes = 60;
  EXPECT_NO_THROW(compare_documents({base}, {other}, {}));
  EXPECT_NO_THROW(compare_documents({base}, {other}, {.cold = true, .force = true}));
  try {
    compare_documents({base}, {other}, {.cold = true});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::not_comparable);
    EXPECT_STREQ(error.what(), "x.json and x.json: device.l2_bytes differs: '50' and '60'");
  }
}

TEST(Comparison, SaysWhatElseDiffersBetweenTheRuns) {
  const std::vector<InputDocument> base = five_runs({row_of("k", 10)});
  EXPECT_EQ(other_conditions(base, base), "");
  std::vector<InputDocument> fresh = base;
  for (InputDocument& run : fresh) run.document.context.git_revision = "def";
  EXPECT_EQ(other_conditions(base, fresh), "") << "of which the comparison is";
  std::vector<InputDocument> with_clocks = base;
  for (InputDocument& run : with_clocks) {
    RunContext& context = run.document.context;
    context.device.uuid = "GPU-1";
    context.device.driver_version = "580.1";
    context.build_flags = "Release";
    context.clocks_before.sm_mhz = context.clocks_after.sm_mhz = 1980;
    context.clocks_before.throttle_reasons = 1;  // idle
  }
  fresh = with_clocks;
  fresh[0].document.context.clocks_after.sm_mhz = 1900;  // less than 2 % of the mean
  EXPECT_EQ(other_conditions(with_clocks, fresh), "");
  EXPECT_EQ(other_conditions(base, with_clocks), "") << "not known of one side";
  for (InputDocument& run : fresh) run.document.context.clocks_after.sm_mhz = 1755;
  fresh[1].document.context.device.driver_version = "610.2";
  fresh[2].document.context.build_flags = "Debug";
  fresh[3].document.rows[0].metrics["throttle_reasons"] = 4;
  EXPECT_EQ(other_conditions(with_clocks, fresh),
            "the runs differ in device.driver_version, build_flags, SM clock after them (1980 and "
            "1755 MHz), throttle reasons (in NEW only)");
  const std::string text = format_comparison(compare_documents(with_clocks, fresh, {}), false);
  EXPECT_NE(text.find("note: the runs differ in device.driver_version, build_flags, SM clock "),
            std::string::npos)
      << text;
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

TEST(Comparison, WhatCouldGoUnseenIsNamedWithItsOwnLimit) {
  const std::vector<ResultRow> rows = {row_of("k", 10), row_of("l", 10)};
  const auto conclusion = [&](const ComparisonOptions& options) {
    const std::string text = format_comparison(compare_single_runs(rows, rows, options), false);
    return text.substr(text.find("\nNOT ABLE TO TELL") + 1);
  };
  EXPECT_TRUE(conclusion({.resolve = 0.01, .resolve_case = 0.1})
                  .starts_with("NOT ABLE TO TELL: in 1 geometric mean and 2 cases a slowdown of 1 "
                               "% (of a case 10 %) could go unseen\n"))
      << conclusion({.resolve = 0.01, .resolve_case = 0.1});
  EXPECT_TRUE(conclusion({.resolve = 0.5, .resolve_case = 0.1})
                  .starts_with("NOT ABLE TO TELL: in 0 geometric means and 2 cases a slowdown of "
                               "10 % could go unseen\n"));
  EXPECT_TRUE(conclusion({.resolve = 0.05})
                  .starts_with("NOT ABLE TO TELL: in 1 geometric mean and 2 cases a slowdown of 5 "
                               "% could go unseen\n"))
      << conclusion({.resolve = 0.05});
}

TEST(Comparison, JsonHasEveryCase) {
  const auto json = to_json(compare({row_of("slow", 10)}, {row_of("slow", 12)}));
  EXPECT_EQ(json.at("regression"), true);
  EXPECT_EQ(json.at("counts").at("SLOWER"), 1);
  EXPECT_EQ(json.at("cases").at(0).at("verdict"), "SLOWER");
  EXPECT_NEAR(json.at("cases").at(0).at("times").at("ratio").get<double>(), 1.2, 1e-9);
}

}  // namespace
}  // namespace spmmbench
