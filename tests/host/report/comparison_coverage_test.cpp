// Cases that some runs have no times of: what is compared nevertheless, what is newly wrong, and of
// what a comparison says nothing.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "compared_rows.hpp"
#include "report/junit.hpp"

namespace spmmbench {
namespace {

using Runs = std::vector<InputDocument>;

constexpr Status kNotOk[] = {Status::timeout, Status::failed, Status::wrong, Status::skipped};

// Eight runs of two cases, the first of which takes `us`; the levels of runs differ by 0.02 %.
Runs eight_runs(double us) {
  Runs runs;
  for (int run = 0; run < 8; ++run) {
    const double level = 1 + 0.0001 * (run % 3);
    runs.push_back(document_of({row_of("case", us * level), row_of("other", 10 * level)}));
  }
  return runs;
}

// The same, where the first case of the named runs is `status`.
Runs broken_in(const std::vector<std::size_t>& which, Status status, double us = 10) {
  Runs runs = eight_runs(us);
  for (const std::size_t run : which)
    runs[run].document.rows[0] = broken_row("case", status, "planted");
  return runs;
}

const std::vector<std::size_t> kAll = {0, 1, 2, 3, 4, 5, 6, 7};

Runs without_the_case() {
  Runs runs = eight_runs(10);
  for (InputDocument& run : runs) run.document.rows.erase(run.document.rows.begin());
  return runs;
}

const ComparedCase& the_case(const Comparison& comparison) {
  for (const ComparedCase& one : comparison.cases)
    if (one.row.kernel == "case") return one;
  throw std::runtime_error("the case is lost");
}

TEST(Coverage, OneBadRunOfBaseHidesNoSlowdown) {
  for (const Status status : kNotOk) {
    const Comparison slower = compare_documents(broken_in({3}, status), eight_runs(11), {});
    EXPECT_EQ(the_case(slower).verdict, CaseVerdict::slower) << to_string(status);
    EXPECT_EQ(slower.exit_code(), ExitCode::regression);
    EXPECT_EQ(the_case(slower).reason,
              "7 of 8 runs of BASE: " + std::string(to_string(status)) + ": planted");
    const Comparison same = compare_documents(broken_in({3}, status), eight_runs(10), {});
    EXPECT_EQ(the_case(same).verdict, CaseVerdict::same) << to_string(status);
    EXPECT_EQ(same.exit_code(), ExitCode::ok);
    EXPECT_NE(format_comparison(same, false).find("note: 1 case compared without some"),
              std::string::npos)
        << format_comparison(same, false);
    EXPECT_NE(format_junit(slower).find("times the old time"), std::string::npos);
    EXPECT_NE(format_junit(slower).find("; 7 of 8 runs of BASE: "), std::string::npos);
  }
}

TEST(Coverage, TooFewGoodRunsOfBaseAreNotAbleToTell) {
  const Runs base = broken_in({0, 1, 2, 3, 4, 5, 6}, Status::timeout);
  const Comparison comparison = compare_documents(base, eight_runs(10.3), {});
  EXPECT_EQ(the_case(comparison).verdict, CaseVerdict::not_able_to_tell);
  EXPECT_EQ(comparison.exit_code(), ExitCode::not_able_to_tell);
}

TEST(Coverage, ARunWithoutTimesOnBothSidesHidesNoSlowdown) {
  const Comparison skipped =
      compare_documents(broken_in({3}, Status::skipped), broken_in({1}, Status::skipped, 11), {});
  EXPECT_EQ(the_case(skipped).verdict, CaseVerdict::slower);
  EXPECT_EQ(the_case(skipped).reason,
            "7 of 8 runs of BASE: skipped: planted; 7 of 8 runs of NEW: skipped: planted");
  for (const bool allowed : {false, true}) {
    const Comparison failed =
        compare_documents(broken_in({3}, Status::failed), broken_in({1}, Status::failed, 11),
                          {.allow_missing = allowed});
    EXPECT_EQ(the_case(failed).verdict, allowed ? CaseVerdict::slower : CaseVerdict::not_ok);
    EXPECT_EQ(failed.exit_code(), ExitCode::regression);
  }
}

TEST(Coverage, WhatIsAllowedToBeMissingInSomeRunsIsComparedByTheOthers) {
  const ComparisonOptions allowed = {.allow_missing = true};
  const Runs lost_in_one = broken_in({3}, Status::skipped, 11);
  EXPECT_EQ(the_case(compare_documents(eight_runs(10), lost_in_one, {})).verdict,
            CaseVerdict::missing);
  const Comparison comparison = compare_documents(eight_runs(10), lost_in_one, allowed);
  EXPECT_EQ(the_case(comparison).verdict, CaseVerdict::slower);
  const Runs lost_in_most = broken_in({1, 2, 3, 4, 5, 6, 7}, Status::skipped, 10);
  EXPECT_EQ(compare_documents(eight_runs(10), lost_in_most, allowed).exit_code(),
            ExitCode::not_able_to_tell);
}

// Eight runs whose first case was tested exactly in so many of them.
Runs tested_in(std::size_t count, double us = 10) {
  Runs runs = eight_runs(us);
  for (std::size_t run = 0; run < runs.size(); ++run) {
    ExactTest& test = runs[run].document.rows[0].exact.emplace();
    test.passed = run < count;
    if (!test.passed) test.not_made = "planted";
  }
  return runs;
}

TEST(Coverage, ACaseThatIsNoLongerTestedExactlyIsMissing) {
  const Comparison lost = compare_documents(tested_in(8), tested_in(7), {});
  EXPECT_EQ(the_case(lost).verdict, CaseVerdict::missing);
  EXPECT_EQ(the_case(lost).reason, "no exact test in NEW: planted");
  EXPECT_EQ(lost.exit_code(), ExitCode::regression);
  EXPECT_EQ(the_case(compare_documents(tested_in(8), eight_runs(10), {})).reason,
            "no exact test in NEW");
  for (const Runs& base : {tested_in(7), eight_runs(10)})
    EXPECT_EQ(the_case(compare_documents(base, tested_in(7), {})).verdict, CaseVerdict::same);
  const ComparisonOptions allowed = {.allow_missing = true};
  EXPECT_EQ(the_case(compare_documents(tested_in(8), tested_in(0), allowed)).verdict,
            CaseVerdict::same);
  EXPECT_EQ(the_case(compare_documents(tested_in(8), tested_in(0, 11), allowed)).verdict,
            CaseVerdict::slower);
}

TEST(Coverage, ANewlyWrongCaseNeverPasses) {
  struct Sides {
    const char* what;
    Runs base, fresh;
    CaseVerdict verdict;
  };
  const CaseVerdict newly = CaseVerdict::newly_wrong, as_before = CaseVerdict::not_ok;
  const Runs wrong = broken_in(kAll, Status::wrong), failed = broken_in(kAll, Status::failed);
  for (const Sides& sides : std::vector<Sides>{
           {"ok", eight_runs(10), wrong, newly},
           {"no row", without_the_case(), wrong, newly},
           {"skipped", broken_in(kAll, Status::skipped), wrong, newly},
           {"skipped, then failing", broken_in(kAll, Status::skipped), failed, newly},
           {"one run timed out", broken_in({3}, Status::timeout), wrong, newly},
           {"failed", failed, wrong, newly},
           {"one run each", broken_in({3}, Status::failed), broken_in({1}, Status::wrong), newly},
           {"wrong too", wrong, wrong, as_before},
           {"wrong before", wrong, failed, as_before},
           {"as often", broken_in({3}, Status::failed), broken_in({1}, Status::failed), as_before},
       }) {
    const Comparison strict = compare_documents(sides.base, sides.fresh, {});
    EXPECT_EQ(the_case(strict).verdict, sides.verdict) << sides.what;
    EXPECT_EQ(strict.exit_code(), ExitCode::regression) << sides.what;
    const Comparison lenient = compare_documents(sides.base, sides.fresh, {.allow_missing = true});
    EXPECT_EQ(lenient.regression(), sides.verdict == newly) << sides.what;
  }
}

TEST(Coverage, TheConclusionCountsWhatWasNotCompared) {
  const auto conclusion = [](const Comparison& comparison) {
    const std::string text = format_comparison(comparison, false);
    return text.substr(text.find("\nno regression") + 1);
  };
  const Comparison all = compare_documents(eight_runs(10), eight_runs(10), {});
  EXPECT_TRUE(conclusion(all).ends_with(" of a case would have been seen\n")) << conclusion(all);
  EXPECT_EQ(to_json(all).at("compared"), 2);
  const Comparison healed = compare_documents(broken_in(kAll, Status::timeout), eight_runs(10), {});
  EXPECT_EQ(healed.exit_code(), ExitCode::ok);
  EXPECT_TRUE(conclusion(healed).ends_with("\n  of 1 case compared; not compared: 1 fixed\n"))
      << conclusion(healed);
  const Comparison fresh = compare_documents(without_the_case(), eight_runs(10), {});
  EXPECT_TRUE(conclusion(fresh).ends_with("; not compared: 1 new\n")) << conclusion(fresh);
  const Comparison lost =
      compare_documents(eight_runs(10), without_the_case(), {.allow_missing = true});
  EXPECT_TRUE(conclusion(lost).ends_with("; not compared: 1 MISSING\n")) << conclusion(lost);
  EXPECT_EQ(to_json(lost).at("compared"), 1);
}

// A run of so many cases of one kernel, whose matrices are called after the part.
InputDocument part_of_sweep(const std::string& part, int cases, double us) {
  std::vector<ResultRow> rows(cases, row_of("k", us));
  for (int i = 0; i < cases; ++i) rows[i].matrix.name = fmt::format("{}{}", part, i);
  return document_of(std::move(rows));
}

TEST(Coverage, AKernelSlowerInOnePartOfASweepIsSlower) {
  const auto sides = [](int runs, double us) {
    Runs all;
    for (int run = 0; run < runs; ++run) {
      const double level = 1 + 0.001 * (run % 3);
      all.push_back(part_of_sweep("first", 60, 10 * level));
      all.push_back(part_of_sweep("second", 59, us * level));
    }
    return all;
  };
  for (const int runs : {1, 7}) {
    const Comparison same =
        compare_documents(sides(runs, 10), sides(runs, 10), {.resolve_case = 0.35});
    EXPECT_EQ(same.groups.at(0).cases, 119);
    EXPECT_EQ(same.exit_code(), ExitCode::ok) << runs;
    const Comparison slower =
        compare_documents(sides(runs, 10), sides(runs, 11.5), {.resolve_case = 0.35});
    EXPECT_EQ(slower.groups.at(0).decision.change, Change::slower) << runs;
    EXPECT_NEAR(slower.groups.at(0).shift.log_ratio, std::log(1.15) * 59 / 119, 1e-9);
  }
}

TEST(Coverage, AMeanHasEveryCaseThoughEachLostAnotherRun) {
  const auto runs = [](double us) {
    Runs all;
    for (int run = 0; run < 8; ++run) {
      all.push_back(part_of_sweep("m", 8, us));
      for (int i = 0; i < 8; ++i)  // cases that scatter too much to tell 6 % alone
        for (double& sample : all.back().document.rows[i].hot->samples_us)
          sample *= 1 + 0.02 * ((3 * run + 5 * i) % 8 - 3.5) / 3.5;
    }
    return all;
  };
  Runs base = runs(10);
  for (std::size_t i = 0; i < 8; ++i) {
    std::vector<ResultRow>& rows = base[i].document.rows;
    rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(i));
  }
  const Comparison same = compare_documents(base, runs(10), {.resolve_case = 0.5});
  EXPECT_EQ(same.groups.at(0).cases, 8);
  const Comparison slower = compare_documents(base, runs(11), {.resolve_case = 0.5});
  EXPECT_EQ(slower.groups.at(0).decision.change, Change::slower);
}

TEST(Coverage, AMeanLeavesOutOnlyCasesOfWhichNothingIsKnown) {
  Runs base, fresh;
  for (Runs* side : {&base, &fresh})
    for (int run = 0; run < 5; ++run) {
      side->push_back(part_of_sweep("m", run == 0 ? 3 : 2, 10 + 0.001 * run));
      side->back().document.context.device.kind = DeviceKind::host;
    }
  const Comparison comparison =
      compare_documents(base, fresh, {.resolve_case = 0.5, .allow_missing = true});
  EXPECT_EQ(comparison.groups.at(0).cases, 2);
  EXPECT_EQ(comparison.groups.at(0).decision.change, Change::same);
  EXPECT_EQ(comparison.count(CaseVerdict::not_able_to_tell), 1) << "the one that was left out";
  EXPECT_EQ(comparison.notes,
            (std::vector<std::string>{"1 case on the CPU has one run of each side, which says "
                                      "nothing: give several, or a --calibration that has them"}));
}

// So many runs that measured only the first matrix, then so many that measured only the second.
Runs runs_of_two_parts(std::size_t first, std::size_t second) {
  Runs runs;
  for (std::size_t run = 0; run < first + second; ++run) {
    runs.push_back(document_of({row_of("k", 10 + 0.001 * static_cast<double>(run % 3))}));
    if (run >= first) runs.back().document.rows[0].matrix.name = "second";
  }
  return runs;
}

TEST(Coverage, OnlyRunsThatMeasuredAMatrixCountForItsCases) {
  const Runs base = runs_of_two_parts(8, 8);
  for (const auto& [first, second] : {std::pair(16, 8), std::pair(8, 5), std::pair(5, 12)}) {
    const Comparison comparison = compare_documents(base, runs_of_two_parts(first, second), {});
    EXPECT_EQ(comparison.count(CaseVerdict::same), 2) << first << " and " << second;
  }
}

TEST(Coverage, ARunThatEndedBeforeAMatrixLostItsCases) {
  Runs fresh = eight_runs(10);
  fresh[2].document.rows.clear();
  fresh[2].document.complete = false;
  const Comparison comparison = compare_documents(eight_runs(10), fresh, {});
  EXPECT_EQ(the_case(comparison).verdict, CaseVerdict::missing);
  EXPECT_EQ(the_case(comparison).reason, "in 7 of 8 runs of NEW");
}

TEST(SameRun, IsToldByWhenAndWhereItBeganAndBySamples) {
  const ResultDocument one = document_of({row_of("k", 10), row_of("l", 10)}).document;
  ResultDocument part = one, later = one, elsewhere = one, other_times = one, no_times = one;
  part.rows.erase(part.rows.begin());
  later.context.started_utc = "2026-01-01T00:00:00Z";
  elsewhere.context.hostname = "another";
  for (ResultRow& row : other_times.rows) row.hot->samples_us[3] *= 1.001;
  for (ResultRow& row : no_times.rows) row.hot.reset();
  EXPECT_TRUE(share_a_measurement(one, one));
  EXPECT_TRUE(share_a_measurement(one, part)) << "of which fewer cases are shown";
  for (const ResultDocument* other : {&later, &elsewhere, &other_times, &no_times}) {
    EXPECT_FALSE(share_a_measurement(one, *other));
    EXPECT_FALSE(share_a_measurement(*other, one));
  }
  EXPECT_FALSE(share_a_measurement(no_times, no_times));
  ResultDocument merged = later;
  merged.context.argv = {"spmmbench", "merge", "all.json", "one.json"};
  EXPECT_TRUE(share_a_measurement(merged, one));
  EXPECT_TRUE(share_a_measurement(one, merged));
  EXPECT_FALSE(share_a_measurement(merged, other_times));
}

TEST(ComparisonText, NoTextOfADocumentReachesTheTerminalRaw) {
  const std::string raw = "\x1b[31m\n", shown = R"(\x1b[31m\x0a)";
  std::vector<ResultRow> rows = {row_of("k" + raw, 10), row_of("l" + raw, 10), row_of("m", 10)};
  rows[0].matrix.name = "n" + raw;
  std::vector<ResultRow> fresh = rows;
  fresh[2] = broken_row("m", Status::failed, "f" + raw);
  Runs base = five_runs(rows);
  for (InputDocument& run : base) run.document.context.git_revision = "r" + raw;
  const std::string text = format_comparison(compare_documents(base, five_runs(fresh), {}), true);
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
  EXPECT_EQ(text.find("[31m\n"), std::string::npos) << text;
  for (const char* name : {"k", "l", "n", "f", "r"})
    EXPECT_NE(text.find(name + shown), std::string::npos) << name << " in " << text;
}

TEST(Junit, HoldsNoCharacterThatXmlForbids) {
  ResultRow row = row_of("k", 10);
  row.matrix.name =
      "a\xef\xbf\xbe"
      "b\xef\xbf\xbf"
      "c\x1b\nz\xff";
  const std::string xml = format_junit(compare({row}, {row}));
  EXPECT_NE(xml.find(R"(name="a\xef\xbf\xbeb\xef\xbf\xbfc\x1b\x0az\xff n=128)"), std::string::npos)
      << xml;
}

}  // namespace
}  // namespace spmmbench
