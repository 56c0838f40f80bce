// The outcome of a run: which cases are measured again, and the exit code.

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io_fixtures.hpp"
#include "report/json.hpp"
#include "result_rows.hpp"
#include "run/command.hpp"
#include "run/ledger.hpp"

namespace spmmbench {
namespace {

TEST(Pending, FailedAndTimedOutCasesAreMeasuredAgainAndWrongOnesOnRequest) {
  for (const auto resume : {Resume::none, Resume::rest, Resume::failed}) {
    const bool all = resume == Resume::none;
    EXPECT_EQ(is_pending(std::nullopt, resume), resume != Resume::failed);
    EXPECT_EQ(is_pending(Status::ok, resume), all);
    EXPECT_EQ(is_pending(Status::skipped, resume), all);
    EXPECT_TRUE(is_pending(Status::failed, resume));
    EXPECT_TRUE(is_pending(Status::timeout, resume));
    EXPECT_EQ(is_pending(Status::wrong, resume), resume != Resume::rest);
  }
}

class LedgerTest : public ::testing::Test {
 protected:
  LedgerTest() {
    options_.outputs.quiet = true;
    options_.outputs.json = folder_.file("out.json");
  }

  static ResultRow with_status(const std::string& kernel, Status status) {
    ResultRow row = row_of(kernel, "fp16", 10);
    row.status = status;
    if (status != Status::ok) row.hot.reset();
    return row;
  }
  static RunContext context() {
    RunContext context;
    context.argv = {"spmmbench"};
    context.copy_gb_per_s = 1;
    return context;
  }
  // The exit code of a run that adds these rows.
  ExitCode run(const std::vector<ResultRow>& rows, bool interrupted = false) {
    Ledger ledger(options_, context());
    ledger.begin(rows.size(), rows.size());
    std::vector<ResultRow> of_matrix;
    for (const ResultRow& row : rows) ledger.add(row, of_matrix);
    return ledger.finish({}, interrupted);
  }

  test::ScratchFolder folder_;
  RunOptions options_;
};

TEST_F(LedgerTest, TheExitCodeIsThatOfTheWorstRow) {
  const ResultRow ok = with_status("a", Status::ok), skipped = with_status("b", Status::skipped);
  EXPECT_EQ(run({ok, skipped}), ExitCode::ok);
  EXPECT_EQ(run({skipped}), ExitCode::some_failed) << "nothing was measured";
  for (const Status failed : {Status::failed, Status::timeout}) {
    EXPECT_EQ(run({ok, with_status("c", failed)}), ExitCode::some_failed);
    EXPECT_EQ(run({with_status("d", Status::wrong), with_status("c", failed)}),
              ExitCode::wrong_result);
  }
  EXPECT_EQ(run({ok, with_status("d", Status::wrong)}, true), ExitCode::interrupted);
  options_.outputs.json.clear();
  EXPECT_EQ(run({ok, with_status("c", Status::timeout)}), ExitCode::some_failed);
  EXPECT_EQ(run({ok, with_status("d", Status::wrong)}), ExitCode::wrong_result);
  EXPECT_EQ(run({}), ExitCode::ok) << "nothing was planned";
}

TEST_F(LedgerTest, TheExitCodeCountsTheRowsOfTheEarlierRun) {
  options_.cases.resume = Resume::rest;
  for (const auto& [status, code] : {std::pair(Status::wrong, ExitCode::wrong_result),
                                     {Status::failed, ExitCode::some_failed},
                                     {Status::timeout, ExitCode::some_failed},
                                     {Status::ok, ExitCode::ok}}) {
    options_.outputs.json = folder_.file(std::string(to_string(status)) + ".json");
    run({with_status("a", status)}, true);
    EXPECT_EQ(run({with_status("b", Status::ok)}), code);
    EXPECT_EQ(run({with_status("a", Status::ok)}), ExitCode::ok) << "it is right now";
  }
  options_.outputs.json = folder_.file("measured.json");
  run({with_status("a", Status::ok)}, true);
  EXPECT_EQ(run({with_status("b", Status::skipped)}), ExitCode::ok) << "something was measured";
}

TEST_F(LedgerTest, ADocumentIsCompleteWhereEveryInputWasReadToItsEnd) {
  EXPECT_EQ(run({with_status("a", Status::ok)}, true), ExitCode::interrupted);
  EXPECT_FALSE(read_document(options_.outputs.json).complete);
  options_.outputs.overwrite = true;
  for (const ExitCode code : {ExitCode::usage, ExitCode::some_failed}) {
    std::optional<Ledger> ledger(std::in_place, options_, context());
    ledger->begin(1, 1);
    std::vector<ResultRow> of_matrix;
    ledger->add(with_status("a", Status::ok), of_matrix);
    ledger->input_failed("bad.mtx: cannot be opened", code);
    EXPECT_EQ(ledger->finish({}, false), code);
    ledger.reset();
    EXPECT_FALSE(read_document(options_.outputs.json).complete);
    const bool goes_on = code == ExitCode::some_failed;
    EXPECT_EQ(std::filesystem::exists(options_.outputs.json + ".journal"), goes_on);
  }
}

TEST_F(LedgerTest, ARunWithoutARowLeavesTheEarlierDocument) {
  run({with_status("a", Status::ok)});
  EXPECT_EQ(run({}, true), ExitCode::interrupted);
  const ResultDocument document = read_document(options_.outputs.json);
  EXPECT_TRUE(document.complete);
  EXPECT_EQ(document.rows.size(), 1U);
}

TEST_F(LedgerTest, WhatHasARowIsPendingWhereItsMatrixIsAnother) {
  run({with_status("a", Status::ok)}, true);
  options_.cases.resume = Resume::rest;
  const Ledger ledger(options_, context());
  ResultRow planned = with_status("a", Status::failed);
  EXPECT_FALSE(ledger.pending(planned));
  planned.matrix = ledger.expected("gen:m");
  EXPECT_FALSE(ledger.pending(planned)) << "not loaded yet";
  EXPECT_FALSE(ledger.may_be_pending("gen:m", {planned}));
  EXPECT_TRUE(ledger.may_be_pending("m.mtx", {planned})) << "the file may have changed";
  planned.matrix.sha256 = "another";
  EXPECT_TRUE(ledger.pending(planned));
  EXPECT_TRUE(ledger.may_be_pending("gen:m", {planned}));
}

TEST_F(LedgerTest, OnlyInputsWithAFailureAreRetried) {
  ResultRow failed = with_status("a", Status::wrong);
  failed.matrix.name = "failed";
  run({failed, with_status("b", Status::ok)}, true);
  options_.cases.resume = Resume::failed;
  const Ledger ledger(options_, context());
  EXPECT_TRUE(ledger.may_be_pending("failed.mtx", {}));
  EXPECT_TRUE(ledger.may_be_pending("./elsewhere/failed.csr", {})) << "the path is not compared";
  EXPECT_FALSE(ledger.may_be_pending("m.mtx", {}));
}

TEST_F(LedgerTest, WhatFailedIsToldInOneLineWhereNothingElseSaysIt) {
  const auto told = [&](const std::vector<ResultRow>& rows) {
    ::testing::internal::CaptureStderr();
    run(rows);
    return ::testing::internal::GetCapturedStderr();
  };
  ResultRow failed = with_status("b", Status::failed);
  failed.reason = "out of\nmemory";
  EXPECT_EQ(told({failed}), "");
  options_.outputs.tells_failures = true;
  EXPECT_EQ(told({with_status("a", Status::ok), with_status("c", Status::skipped)}), "");
  const std::string line =
      told({with_status("a", Status::ok), failed, with_status("c", Status::wrong)});
  EXPECT_TRUE(line.starts_with("spmmbench: 2 of 3 cases failed or wrong, the first: ")) << line;
  EXPECT_TRUE(line.ends_with(" fp16 b: failed: out of\\x0amemory\n")) << line;
  options_.cases.resume = Resume::rest;
  options_.cases.inputs = {"m.mtx"};
  EXPECT_EQ(told({}),
            "spmmbench: no case of this run failed, but recorded ones did or are wrong\n");
}

TEST_F(LedgerTest, ARunThatGoesOnNamesTheMatricesThatItWasNotGiven) {
  ResultRow other = with_status("a", Status::ok);
  other.matrix.name = "other";
  run({with_status("a", Status::ok), other}, true);
  options_.cases.resume = Resume::rest;
  options_.cases.inputs = {"elsewhere/m.mtx"};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run({}), ExitCode::ok);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "spmmbench: kept: 1 row of 1 matrix not among these inputs: other\n");
}

TEST_F(LedgerTest, ARunThatGoesOnKeepsTheRowsOfARenamedFileUnderItsNewName) {
  const ResultRow row = with_status("a", Status::ok);
  run({row}, true);
  options_.cases.resume = Resume::rest;
  options_.cases.inputs = {"new.mtx"};
  {
    Ledger ledger(options_, context());
    ledger.begin(1, 1);
    ResultRow renamed = row;
    renamed.matrix.name = "new";
    renamed.matrix.source = "new.mtx";
    EXPECT_TRUE(ledger.pending(renamed));
    ::testing::internal::CaptureStderr();
    ledger.take_renamed(renamed.matrix);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(),
              "spmmbench: new.mtx: was called m, and its rows have the new name\n");
    EXPECT_FALSE(ledger.pending(renamed));
    EXPECT_EQ(ledger.finish({}, false), ExitCode::ok);
  }
  const ResultDocument document = read_document(options_.outputs.json);
  ASSERT_EQ(document.rows.size(), 1U);
  EXPECT_EQ(document.rows[0].matrix.name, "new");
  EXPECT_EQ(document.rows[0].command, case_command(options_.cases, document.rows[0]));
  EXPECT_TRUE(document.complete);
}

TEST_F(LedgerTest, AnInterruptedRunNamesResumeWhereItCanGoOn) {
  const auto said = [this] {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(run({with_status("a", Status::ok)}, true), ExitCode::interrupted);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said(), "spmmbench: interrupted: what was measured is kept, and --resume goes on\n");
  options_.outputs.json = "-";
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(said(), "spmmbench: interrupted: what was measured is kept\n");
  EXPECT_TRUE(::testing::internal::GetCapturedStdout().starts_with("{\"schema_version\": "));
}

}  // namespace
}  // namespace spmmbench
