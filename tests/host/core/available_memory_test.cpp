// How much memory is left, and what happens to those who want more.

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "core/available_memory.hpp"
#include "gpu/backend.hpp"
#include "io_fixtures.hpp"
#include "measure/operands.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

constexpr std::size_t kMib = std::size_t{1} << 20;

// A machine with 100 MiB left and nothing that limits a process.
class Machine : public ::testing::Test {
 protected:
  Machine() {
    root_.write("proc/meminfo", "MemFree: 1 kB\nMemAvailable:  102400 kB\nCached: 7 kB\n");
  }

  void limit(const std::string& group, const std::string& most, std::size_t current) {
    const std::string folder = "sys/fs/cgroup/" + group;
    root_.write(folder + "/memory.max", most + "\n");
    root_.write(folder + "/memory.current", fmt::format("{}\n", current));
  }
  std::size_t left() const { return available_memory_bytes(root_.path()); }

  test::ScratchFolder root_;
};

TEST_F(Machine, WithoutACgroupLeavesWhatTheSystemSays) { EXPECT_EQ(left(), 100 * kMib); }

TEST_F(Machine, ThatSaysNothingHasNoLimit) {
  const test::ScratchFolder empty;
  EXPECT_EQ(available_memory_bytes(empty.path()), SIZE_MAX);
}

TEST_F(Machine, LeavesACgroupItsLimitLessWhatItUses) {
  limit(".", std::to_string(50 * kMib), 30 * kMib);
  EXPECT_EQ(left(), 20 * kMib);
  limit(".", std::to_string(50 * kMib), 51 * kMib);
  EXPECT_EQ(left(), 0U);
  limit(".", std::to_string(500 * kMib), 30 * kMib);
  EXPECT_EQ(left(), 100 * kMib) << "the machine has less";
  limit(".", "max", 30 * kMib);
  EXPECT_EQ(left(), 100 * kMib);
}

TEST_F(Machine, CountsFilesInThePageCacheAsLeft) {
  limit(".", std::to_string(50 * kMib), 49 * kMib);
  root_.write("sys/fs/cgroup/memory.stat",
              fmt::format("anon 1\nfile {}\ninactive_file {}\nactive_file {}\n", 40 * kMib,
                          20 * kMib, 10 * kMib));
  EXPECT_EQ(left(), 31 * kMib);
}

TEST_F(Machine, LooksAtEveryCgroupAroundTheProcess) {
  root_.write("proc/self/cgroup", "4:memory:/other\n0::/outer/inner\n");
  limit("outer", std::to_string(60 * kMib), 20 * kMib);
  limit("outer/inner", std::to_string(50 * kMib), 20 * kMib);
  EXPECT_EQ(left(), 30 * kMib);
  limit("outer", std::to_string(60 * kMib), 55 * kMib);
  EXPECT_EQ(left(), 5 * kMib);
  limit("other", "1", 0);
  EXPECT_EQ(left(), 5 * kMib) << "another cgroup";
}

TEST_F(Machine, LeavesAProcessTheAddressesThatItMayHave) {
  const auto limit_addresses = [&](const std::string& soft) {
    root_.write("proc/self/limits",
                fmt::format("Limit  Soft Limit  Hard Limit  Units\nMax data size  1  1  bytes\n"
                            "Max address space         {}  unlimited  bytes\n",
                            soft));
    return left();
  };
  root_.write("proc/self/status", "Name:\tx\nVmPeak:\t 99999 kB\nVmSize:\t   10240 kB\n");
  EXPECT_EQ(limit_addresses(std::to_string(30 * kMib)), 20 * kMib);
  EXPECT_EQ(limit_addresses(std::to_string(5 * kMib)), 0U);
  EXPECT_EQ(limit_addresses("unlimited"), 100 * kMib);
}

std::unique_ptr<Device> host_with_8_mib() {
  return open_host_device([] { return 8 * kMib; });
}

TEST(HostMemoryLimit, IsHowMuchTheDeviceAllocates) {
  const auto device = host_with_8_mib();
  EXPECT_EQ(device->free_bytes(), 8 * kMib);
  EXPECT_EQ(device->allocate(8 * kMib).bytes(), 8 * kMib);
  EXPECT_THROW((void)device->allocate(8 * kMib + 1), OutOfMemory);
}

TEST(HostMemoryLimit, RefusesOperandsThatFitOneByOneOnly) {
  const auto device = host_with_8_mib();
  const CsrMatrix a{1000, 1000, std::vector<std::int64_t>(1001), {}, {}};
  const DenseMatrix b{1000, 600, std::vector<float>(600'000)};
  const auto make = [&](std::int64_t n, const DenseMatrix* given) {
    return make_operands(a, n, Precision::fp32, ElementType::f32, Layout::row_major, given, 1,
                         *device);
  };
  EXPECT_EQ(make(1000, nullptr).b.bytes(), 4'000'000U);
  try {
    (void)make(1200, nullptr);
    FAIL() << "B and C of 4.8 MB each were made";
  } catch (const OutOfMemory& error) {
    EXPECT_STREQ(error.what(), "out of host memory: needs 0.01 GiB, 0.01 GiB free");
  }
  const CsrMatrix wide_a{0, std::int64_t{1} << 22, {0}, {}, {}};  // B: 2^64 bytes and more
  for (const std::int64_t n : {std::int64_t{1} << 40, std::int64_t{1} << 41, INT64_MAX >> 22})
    EXPECT_THROW((void)make_operands(wide_a, n, Precision::fp32, ElementType::f32,
                                     Layout::row_major, nullptr, 1, *device),
                 OutOfMemory)
        << n;
  EXPECT_NO_THROW((void)make(600, &b));
  const DenseMatrix wide{1000, 1000, std::vector<float>(1'000'000)};
  EXPECT_THROW((void)make(1000, &wide), OutOfMemory) << "B is there twice while it is rounded";
}

TEST(HostMemoryLimit, HoldsForTheCopiesThatAKernelMakesOfBAndC) {
  const auto device = host_with_8_mib();
  const CsrMatrix a{1000, 1000, std::vector<std::int64_t>(1001), {}, {}};
  for (const char* const name : {"cpu_csr", "eigen_csr"}) {
    const Kernel* const kernel = Registry<Kernel>::instance().find(name);
    if (kernel == nullptr) continue;  // built without Eigen
    StageTimer stages;
    Problem problem;
    problem.a = &a;
    problem.precision = Precision::fp16;
    const auto prepared = kernel->prepare(problem.operand(), {}, *device, stages);
    EXPECT_NE(prepared->bind({2000, ElementType::f32, Layout::row_major}, stages), nullptr);
    EXPECT_THROW((void)prepared->bind({2100, ElementType::f32, Layout::row_major}, stages),
                 OutOfMemory)
        << name << ": B of 4.2 MB, widened";
  }
}

}  // namespace
}  // namespace spmmbench
