// The memory of a sweep and of a merge does not grow with their rows.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "../host/io_fixtures.hpp"
#include "../host/result_rows.hpp"
#include "heap.hpp"
#include "run/ledger.hpp"
#include "run/runner.hpp"
#include "run_words.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

constexpr int kFew = 30, kMany = 90;
constexpr int kSamples = 2000;  // 16 KB in memory

// Of what a row takes, its key and its place in the journal may stay.
constexpr std::int64_t kMayStay = 4000;

// The document of a sweep over `count` matrices of one row each.
void record(const std::string& json, int count) {
  RunOptions options;
  options.outputs.quiet = true;
  options.outputs.json = json;
  RunContext context;
  context.argv = {"spmmbench"};
  context.copy_gb_per_s = 1;
  Ledger ledger(options, context);
  ledger.begin(count, count);
  ResultRow row = row_of("cpu_csr", "fp16", 10);
  row.hot->samples_us.assign(kSamples, 1.5);
  std::vector<ResultRow> of_matrix;
  for (int i = 1; i <= count; ++i) {
    row.matrix.name = row.matrix.source = "m" + std::to_string(i);
    ledger.add(row, of_matrix);
    ledger.print_matrix(of_matrix);
  }
  ledger.finish({}, false);
}

TEST(Rows, OfASweepAreNotKept) {
  const test::ScratchFolder folder;
  RunOptions options;
  options.cases.ns = {1};
  options.cases.kernels = {"cpu_csr"};
  options.cases.baselines = false;
  options.protocol.device = -1;
  options.protocol.limits = {.noise = 0, .min_samples = 4, .max_samples = 4};
  options.outputs.quiet = true;
  options.outputs.json = folder.file("out.json");
  for (int i = 0; i < kMany; ++i)
    options.cases.inputs.push_back("gen:uniform?rows=40&cols=50&seed=" + std::to_string(i));
  int rows = 0;
  std::int64_t early = 0, late = 0, of_a_row = 0;
  options.outputs.after_case = [&](ResultRow& row) {
    EXPECT_EQ(row.status, Status::ok) << row.reason;
    if (++rows == kFew) early = testing::heap_bytes();
    if (rows != kMany) return;
    late = testing::heap_bytes();
    const std::vector<ResultRow> copy = {row};
    of_a_row = testing::heap_bytes() - late;
  };
  EXPECT_EQ(run_benchmark(options, {"spmmbench"}), ExitCode::ok);
  EXPECT_LT((late - early) / (kMany - kFew), of_a_row)
      << "keys and places alone take less than a row";
}

TEST(Rows, OfMergedDocumentsAreNotKept) {
  const test::ScratchFolder folder;
  const auto peak_of_merging = [&](int count) {
    const std::string from = folder.file("from" + std::to_string(count) + ".json");
    record(from, count);
    ExitCode code = ExitCode::usage;
    ::testing::internal::CaptureStdout();
    const std::int64_t peak = testing::peak_bytes_of([&] {
      code = testing::run_words({"merge", "--overwrite", folder.file("out.json"), from});
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
