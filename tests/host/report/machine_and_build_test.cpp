// Which runs are of one machine and one build.

#include <gtest/gtest.h>

#include "report/machine_and_build.hpp"

namespace spmmbench {
namespace {

RunContext context_of(const std::string& uuid) {
  RunContext context;
  context.hostname = "host";
  context.git_revision = "0123";
  context.device.kind = DeviceKind::cuda;
  context.device.uuid = uuid;
  context.device.l2_bytes = 50 << 20;
  context.device.cusparse_version = "12.6";
  return context;
}

std::string first_difference(const RunContext& a, const RunContext& b) {
  const std::vector<Difference> found = differences_of_machine_and_build(a, b);
  return found.empty() ? "" : found[0].text();
}

TEST(MachineAndBuild, DifferInWhatBothKnow) {
  const RunContext one = context_of("GPU-1");
  EXPECT_EQ(first_difference(one, one), "");
  RunContext other = one;
  other.device.cusparse_version = "12.7";
  EXPECT_EQ(first_difference(one, other), "device.cusparse_version differs: '12.6' and '12.7'");
  other.device.cusparse_version = "";
  other.device.l2_bytes = 0;
  EXPECT_EQ(first_difference(one, other), "");
  other.git_revision = "4567";
  EXPECT_EQ(first_difference(one, other), "git_revision differs: '0123' and '4567'");
  other.device.uuid = "GPU-2";
  EXPECT_EQ(first_difference(one, other), "device.uuid differs: 'GPU-1' and 'GPU-2'");
}

TEST(MachineAndBuild, ThreadsOfTheCpuHaveTheirName) {
  RunContext one = context_of(""), other = one;
  one.device.kind = other.device.kind = DeviceKind::host;
  one.device.sm_count = 1;
  other.device.sm_count = 2;
  EXPECT_EQ(first_difference(one, other), "threads differs: '1' and '2'");
}

TEST(MachineAndBuild, OfARevisionThatWasEditedTheLinkersIdDecides) {
  for (const std::string revision : {"0123-dirty", "unknown"}) {
    RunContext one = context_of("");
    one.git_revision = revision;
    one.build_id = "aa";
    RunContext other = one;
    EXPECT_EQ(first_difference(one, other), "");
    other.build_id = "bb";
    EXPECT_EQ(first_difference(one, other), "build_id differs: 'aa' and 'bb'");
    other.build_id = "";  // of a document from before it was recorded
    EXPECT_EQ(first_difference(one, other), "");
  }
  RunContext one = context_of(""), other = one;
  one.build_id = "aa";
  other.build_id = "bb";
  EXPECT_EQ(first_difference(one, other), "") << "of a clean revision";
}

TEST(MachineAndBuild, TheGpusOfOneRunHaveNoOrder) {
  EXPECT_EQ(first_difference(context_of("a, b"), context_of("b, a")), "");
  EXPECT_NE(first_difference(context_of("a, b"), context_of("a")), "");
  EXPECT_NE(first_difference(context_of("a, b"), context_of("a, c")), "");
}

}  // namespace
}  // namespace spmmbench
