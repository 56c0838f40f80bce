// One product on several GPUs, a process for each: every part of C is right, by the exact test too.
// The same on the host, where ranks exchange rows through sockets.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "devices.hpp"
#include "gpu/nccl.hpp"
#include "multi/split_case.hpp"
#include "process/child.hpp"
#include "process/temporary_folder.hpp"
#include "spmmbench/precision.hpp"
#include "spmmbench/random.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::test {
namespace {

constexpr const char* kAllRight = "parts that are right: ";
constexpr double kTimeout_s = 100;

// What a rank reads from its standard input.
struct RankOfTest {
  int rank = 0, ranks = 0;
  DeviceKind kind = DeviceKind::host;
  Split split = Split::columns;
  std::string meeting;

  std::string text() const {
    return fmt::format("{} {} {} {} {}", rank, ranks, kind == DeviceKind::cuda ? "cuda" : "host",
                       to_string(split), meeting);
  }
  static std::optional<RankOfTest> read() {
    RankOfTest of;
    std::string device, split;
    if (!(std::cin >> of.rank >> of.ranks >> device >> split >> of.meeting)) return std::nullopt;
    of.kind = device == "cuda" ? DeviceKind::cuda : DeviceKind::host;
    of.split = parse_split(split);
    return of;
  }
};

// Row i has `columns(i)`, ascending.
template <class Columns>
CsrMatrix with_columns(std::int64_t rows, std::int64_t cols, const Columns& columns) {
  CsrMatrix out{rows, cols, {0}, {}, {}};
  for (std::int64_t row = 0; row < rows; ++row) {
    for (const std::int64_t column : columns(row)) {
      out.col_idx.push_back(static_cast<std::int32_t>(column));
      out.values.push_back(round_to(Precision::fp16, uniform_at(1, row, column)));
    }
    out.row_ptr.push_back(static_cast<std::int64_t>(out.col_idx.size()));
  }
  return out;
}

// A band, of which parts need a few rows of each other, and columns at random, of which they need
// most. B has a page of 2 MiB for each of two parts.
std::vector<CsrMatrix> matrices_of_parts(DeviceKind kind) {
  const std::int64_t size = kind == DeviceKind::cuda ? 20'000 : 400;
  const auto band = [&](std::int64_t row) {
    std::set<std::int64_t> columns;
    for (std::int64_t column = row - 2; column <= row + 2; ++column)
      columns.insert(std::clamp<std::int64_t>(column, 0, size - 1));
    return columns;
  };
  const auto random = [&](std::int64_t row) {
    std::set<std::int64_t> columns;
    const std::uint64_t count = hash_position(2, row, 0) % 12;  // none in some rows
    for (std::uint64_t i = 1; i <= count; ++i)
      columns.insert(
          static_cast<std::int64_t>(hash_position(3, row, i) % static_cast<std::uint64_t>(size)));
    return columns;
  };
  std::vector<CsrMatrix> matrices;
  matrices.push_back(with_columns(size, size, band));
  matrices.push_back(with_columns(size, size, random));
  matrices.push_back(with_columns(size / 2, size, random));
  return matrices;
}

// Says what is wrong with a case, or nothing.
std::string fault_of(SplitA& a, const Kernel& kernel, std::int64_t n) {
  const KernelChoice choice = {&kernel, {}};
  ResultRow row;
  row.split.emplace();
  try {
    a.measure({.choice = &choice,
               .shape = {.n = n, .c_type = ElementType::f32},
               .seed = 1,
               .limits = {.noise = 0.1, .min_samples = 3, .max_samples = 3, .max_seconds = 0.05}},
              row);
  } catch (const CaseEnded& ended) {
    return ended.what();
  }
  if (row.status != Status::ok) return row.reason;
  return row.exact && row.exact->passed ? "" : "no exact test";
}

// Run by the tests below in processes of their own.
TEST(RankOfSeveral, DISABLED_HasRightParts) {
  const std::optional<RankOfTest> of = RankOfTest::read();
  if (!of) GTEST_SKIP() << "the tests of several GPUs start it";
  constexpr std::int64_t kColumns = 128;
  const bool on_gpu = of->kind == DeviceKind::cuda;
  const auto device = on_gpu ? open_cuda_device(of->rank) : open_host_device();
  Group group({of->rank, of->ranks, of->rank, of->meeting}, kTimeout_s);
  Team team(group, *device, of->split);
  const std::vector<std::string> kernels =
      on_gpu ? std::vector<std::string>{"csr_row_split", "async_wcsr"}
             : std::vector<std::string>{"cpu_csr"};
  int right = 0;
  for (const CsrMatrix& whole : matrices_of_parts(of->kind)) {
    SplitA a(whole, Precision::fp16, of->split, team);
    for (const std::string& name : kernels) {
      const std::string fault = fault_of(a, Registry<Kernel>::instance().at(name), kColumns);
      EXPECT_EQ(fault, "") << name << ", " << whole.rows << " rows";
      right += fault.empty();
    }
  }
  std::cout << kAllRight << right << std::endl;
}

// The ranks, and what they said.
struct EndOfParts {
  bool well = true;
  int right = 0;
  std::string output;
};

EndOfParts run_ranks(DeviceKind kind, Split split, int ranks) {
  // Each rank has one test, which is not to be in another shard.
  for (const char* variable : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"}) unsetenv(variable);
  const TemporaryFolder folder;
  std::vector<std::unique_ptr<Child>> children;
  for (int rank = 0; rank < ranks; ++rank)
    children.push_back(std::make_unique<Child>(
        kThisProgram,
        std::vector<std::string>{"--gtest_filter=RankOfSeveral.*",
                                 "--gtest_also_run_disabled_tests", "--gtest_brief=1"},
        RankOfTest{rank, ranks, kind, split, folder.file("ranks")}.text()));
  EndOfParts ended;
  const auto keep = [&](const std::string& line) {
    ended.output += line + "\n";
    if (line.starts_with(kAllRight))
      ended.right += std::stoi(line.substr(std::string(kAllRight).size()));
  };
  for (bool running = true; running; pause_briefly()) {
    running = false;
    for (const auto& child : children) running |= child->pump(keep, keep);
  }
  for (const auto& child : children) ended.well &= child->exit_code() == 0;
  return ended;
}

class SeveralGpus : public testing::TestWithParam<Split> {};

void expect_right_parts(DeviceKind kind, Split split, int ranks) {
  const EndOfParts ended = run_ranks(kind, split, ranks);
  const int cases = 3 * (kind == DeviceKind::cuda ? 2 : 1);  // matrices and kernels
  EXPECT_TRUE(ended.well) << ended.output;
  EXPECT_EQ(ended.right, ranks * cases) << ended.output;
}

TEST_P(SeveralGpus, HaveRightParts) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  const int ranks = GetParam() == Split::grid ? 4 : 2;
  const auto gpus = static_cast<int>(probe_cuda().devices.size());
  if (gpus < ranks) GTEST_SKIP() << "needs " << ranks << " GPUs, found " << gpus;
  if (const std::string why = why_no_nccl(); gathers_rows(GetParam()) && !why.empty())
    GTEST_SKIP() << why;
  expect_right_parts(device.info().kind, GetParam(), ranks);
}

TEST_P(SeveralGpus, RanksOnTheHostHaveRightParts) {
  expect_right_parts(DeviceKind::host, GetParam(), GetParam() == Split::grid ? 4 : 2);
}

INSTANTIATE_TEST_SUITE_P(splits, SeveralGpus,
                         testing::Values(Split::columns, Split::rows, Split::rows_all,
                                         Split::rows_needed, Split::peer, Split::peer_in_place,
                                         Split::peer_pulled, Split::grid),
                         [](const auto& info) { return std::string(to_string(info.param)); });

}  // namespace
}  // namespace spmmbench::test
