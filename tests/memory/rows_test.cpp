// The memory of a sweep and of a merge does not grow with their rows.

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "../host/io_fixtures.hpp"
#include "../host/result_rows.hpp"
#include "cli/commands.hpp"
#include "heap.hpp"
#include "run/ledger.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

constexpr int kFew = 50, kMany = 250;
constexpr int kSamples = 2000;  // 16 KB in memory

// Of what a row takes, its key and its place in the journal may stay.
constexpr std::int64_t kMayStay = 4000;

// A sweep over `count` matrices of one row each. Calls `after` with the number of each row.
void sweep(const std::string& json, int count, const std::function<void(int)>& after) {
  RunOptions options;
  options.outputs.quiet = true;
  options.outputs.json = json;
  RunContext context;
  context.argv = {"spmmbench"};
  context.copy_gb_per_s = 1;
  Ledger ledger(options, context);
  ledger.begin(count, count);
  ResultRow row = row_of("cpu_csr", "fp32", 10);
  row.hot->samples_us.assign(kSamples, 1.5);
  std::vector<ResultRow> of_matrix;
  for (int i = 1; i <= count; ++i) {
    row.matrix.name = row.matrix.source = "m" + std::to_string(i);
    ledger.add(row, of_matrix);
    ledger.print_matrix(of_matrix);
    after(i);
  }
  ledger.finish({}, false);
}

TEST(Rows, OfASweepAreNotKept) {
  const test::ScratchFolder folder;
  std::int64_t early = 0, late = 0;
  sweep(folder.file("out.json"), kMany, [&](int i) {
    if (i == kFew) early = testing::heap_bytes();
    if (i == kMany) late = testing::heap_bytes();
  });
  EXPECT_LT(late - early, kMayStay * (kMany - kFew));
}

TEST(Rows, OfMergedDocumentsAreNotKept) {
  const test::ScratchFolder folder;
  const auto peak_of_merging = [&](int count) {
    const std::string from = folder.file("from" + std::to_string(count) + ".json");
    sweep(from, count, [](int) {});
    CLI::App app;
    ExitCode code = ExitCode::ok;
    add_merge(app, code);
    ::testing::internal::CaptureStdout();
    const std::int64_t peak = testing::peak_bytes_of([&] {
      app.parse("merge --overwrite " + folder.file("out.json") + " " + from);
      return 0;
    });
    ::testing::internal::GetCapturedStdout();
    EXPECT_EQ(code, ExitCode::ok);
    return peak;
  };
  const std::int64_t few = peak_of_merging(kFew), many = peak_of_merging(kMany);
  EXPECT_LT(many - few, kMayStay * (kMany - kFew));
}

}  // namespace
}  // namespace spmmbench
