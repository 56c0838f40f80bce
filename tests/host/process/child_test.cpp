// Children: what they are told, and how they are read.

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>

#include "io/output.hpp"
#include "process/child.hpp"
#include "run/command.hpp"
#include "run/protocol.hpp"
#include "run/work.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/printable.hpp"

namespace spmmbench {
namespace {

const std::string kOddName = "-a \\b'\"$\xff\x01\xc3\xa9\n.mtx";

Work every_option() {
  Work work;
  work.cases.inputs = {kOddName, "gen:uniform?rows=5"};
  work.cases.ns = {1, 64};
  work.cases.kernels = {"cpu_csr?threads=2"};
  work.cases.exclude = {"x*"};
  work.cases.precisions = {Precision::tf32, Precision::bf16};
  work.cases.c_type = ElementType::f16;
  work.cases.layout = Layout::col_major;
  work.cases.reorderings = {Spec::parse("rsh?alpha=0.5")};
  work.cases.baselines = false;
  work.cases.load = {UINT64_MAX, std::pair<std::int64_t, std::int64_t>{3, 4}, ElementType::bf16,
                     "block:2x2:0.5"};
  work.cases.b_file = "b\xfe.npy";
  work.cases.b_dims = {4, 5};
  work.cases.gpus = 4;
  work.cases.split = "rows";
  work.cases.resume = Resume::failed;
  work.cases.known = {{"key", {Status::timeout, "00ff"}}};
  work.protocol.isolate = true;
  work.protocol.timeout_s = 0.1;
  work.protocol.repeat_check = true;
  work.protocol.calls_curve = {1, 10};
  work.protocol.a_memory = DeviceKind::cuda;
  work.protocol.cache = "k\xfc";
  work.protocol.save_failing = "s\xfb";
  work.protocol.limits = {0.125, 3, 7, 0.3};
  work.protocol.plugins_here = true;
  work.protocol.rates = {1e12, 2e12, 3e14};
  work.protocol.device = -1;
  work.protocol.one_launch = true;
  work.protocol.place = {3, 4, 1, "/m\xfa"};
  return work;
}

TEST(Work, EveryOptionSurvivesItsDescription) {
  const std::string text = describe_work(every_option());
  const Work again = read_work(text);
  EXPECT_EQ(describe_work(again), text);
  EXPECT_EQ(again.cases.inputs, every_option().cases.inputs);
  EXPECT_EQ(again.cases.b_file, every_option().cases.b_file);
  EXPECT_EQ(again.cases.load.seed, UINT64_MAX);
  EXPECT_EQ(again.protocol.limits.max_seconds, 0.3);
  EXPECT_NE(describe_work(Work{}), text);
}

TEST(Work, AnythingElseIsRefusedInOneLine) {
  for (const char* bad : {"", "{}", "[1]", "{\"inputs\": 3}", "\xff"}) try {
      read_work(bad);
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("work description"), std::string::npos);
    }
  std::string text = describe_work(every_option());
  text.replace(text.find("\"c_type\":1"), 10, "\"c_type\":9");
  EXPECT_THROW(read_work(text), Error);
}

TEST(Work, AChildMeasuresTheCaseOfItsRow) {
  ResultRow row;
  row.matrix.source = to_printable(kOddName);
  row.n = 7;
  row.kernel = "cpu_csr?threads=1";
  row.precision = "fp16";
  row.c_type = "bf16";
  row.layout = "row";
  row.reorder = "rcm?x=1";
  const Work work = case_work(every_option(), row);
  EXPECT_EQ(work.cases.inputs, std::vector<std::string>{kOddName});
  EXPECT_EQ(work.cases.kernels, std::vector<std::string>{"cpu_csr?threads=1"});
  EXPECT_EQ(work.cases.precisions, std::vector{Precision::fp16});
  EXPECT_EQ(work.cases.c_type, ElementType::bf16);
  EXPECT_EQ(work.cases.layout, Layout::row_major);
  EXPECT_EQ(work.cases.reorderings.front().to_string(), "rcm?x=1");
  EXPECT_TRUE(!work.protocol.isolate && !work.cases.baselines);
}

TEST(Protocol, GivesTheOptionsBackThatItWasMadeOf) {
  RunContext context;
  context.protocol = protocol_of(every_option().cases, every_option().protocol);
  context.seed = 9;
  const Work again = work_of(context);
  EXPECT_EQ(protocol_of(again.cases, again.protocol).at("dims"), "3 4 5");
  EXPECT_EQ(again.cases.b_file, every_option().cases.b_file);
  EXPECT_EQ(again.protocol.limits.min_samples, 3);
  EXPECT_EQ(again.cases.load.seed, 9U);
  context.protocol.erase("max_seconds");
  EXPECT_THROW(work_of(context), Error);
}

TEST(Command, IsQuotedForAShellWhateverTheBytes) {
  EXPECT_EQ(shell_word("plain-1.mtx"), "plain-1.mtx");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("it's \\"), "'it'\\''s \\'");
  EXPECT_EQ(shell_word("it's \\\n\xff"), "$'it\\'s \\\\\\x0a\\xff'");
}

TEST(Printable, IsOneTextForEveryStringOfBytes) {
  for (const std::string& bytes : {kOddName, std::string("\xed\xa0\x80\xf4\x90\x80\x80\xc0\xaf"),
                                   std::string("a\0b", 3), std::string("\\xff"), std::string()}) {
    const std::string text = to_printable(bytes);
    EXPECT_EQ(from_printable(text), bytes);
    EXPECT_EQ(printable_message(text), text) << "no control characters, valid UTF-8";
  }
  EXPECT_EQ(to_printable("\xc3\xa9 \xff\n\x1b[1m\xc2\x9b"),
            "\xc3\xa9 \\xff\\x0a\\x1b[1m\\xc2\\x9b");
  for (const char* bad : {"\\", "\\x", "\\x1", "\\xg0", "\\n"})
    EXPECT_THROW(from_printable(bad), Error) << bad;
}

std::vector<std::string> lines_of(Child& child) {
  std::vector<std::string> lines;
  while (child.pump([&](const std::string& line) { lines.push_back(line); })) pause_briefly();
  return lines;
}

TEST(Child, ReadsItsInputToTheEndAndAnswersInLines) {
  const std::string input = std::string(1 << 20, 'x') + "\nlast\n";
  Child child("wc", {"-c"}, input);
  EXPECT_EQ(lines_of(child), std::vector<std::string>{std::to_string(input.size())});
  EXPECT_EQ(child.exit_code(), 0);
}

TEST(Child, WithoutInputFindsItsInputAtAnEnd) {
  Child child("cat", {});
  EXPECT_TRUE(lines_of(child).empty());
  EXPECT_EQ(child.exit_code(), 0);
}

TEST(Child, ThatPrintsWithoutEndIsLeftAloneInBetween) {
  for (const char* text : {"a line", "\\0"}) {  // with ends of lines, and without
    Child child("sh", {"-c", std::string("exec yes '") + text + "' | tr -d '\\0'"});
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(child.pump([](const std::string&) {}));
    child.kill();
    while (child.pump([](const std::string&) {})) pause_briefly();
  }
}

TEST(Child, IsKilledWithTheProcessesThatItHasStarted) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const Descriptor held(ends[0]);  // at an end when no process has the other one
  Child child("sh", {"-c", "sleep 60 & echo started; wait"});
  close(ends[1]);
  bool started = false;
  while (!started) {
    ASSERT_TRUE(child.pump([&](const std::string& line) { started |= line == "started"; }));
    pause_briefly();
  }
  child.kill();
  pollfd ended{held.get(), POLLIN, 0};
  constexpr int kPatienceMs = 10'000;
  EXPECT_EQ(poll(&ended, 1, kPatienceMs), 1);
}

TEST(Child, IsEndedWithProcessesThatHaveLeftItsGroup) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const Descriptor held(ends[0]);  // at an end when no process has the other one
  Child child("sh", {"-c", "setsid sh -c 'setsid sleep 60 & sleep 60' & echo started"});
  close(ends[1]);
  while (child.pump([](const std::string&) {})) pause_briefly();
  EXPECT_EQ(child.exit_code(), 0);
  pollfd ended{held.get(), POLLIN, 0};
  constexpr int kPatienceMs = 10'000;
  EXPECT_EQ(poll(&ended, 1, kPatienceMs), 1);
}

TEST(Child, LeavesTheOtherChildrenOfThisProcess) {
  Child other("sleep", {"60"});
  Child child("true", {});
  while (child.pump([](const std::string&) {})) pause_briefly();
  EXPECT_TRUE(other.pump([](const std::string&) {}));
}

TEST(Child, ThatDoesNotExistEndsWith127AndTheReason) {
  Child child("/no/such/program", {});
  lines_of(child);
  EXPECT_EQ(child.exit_code(), 127);
  EXPECT_NE(child.ending().find("No such file"), std::string::npos);
}

}  // namespace
}  // namespace spmmbench
