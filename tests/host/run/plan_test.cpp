#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "run/plan.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

TEST(Plan, AnUnknownKernelIsNamedWithTheKnownOnes) {
  RunOptions options;
  options.kernels = {"no_such_kernel"};
  try {
    plan_groups(options, DeviceKind::host);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("cpu_csr"), std::string::npos);
  }
}

TEST(Plan, AMatchedKernelMustHaveTheOption) {
  RunOptions options;
  options.kernels = {"cpu_csr?colour=blue"};
  EXPECT_THROW(plan_groups(options, DeviceKind::host), Error);
}

TEST(Plan, OneGroupPerPrecisionWithoutBaselines) {
  RunOptions options;
  options.baselines = false;
  options.kernels = {"cpu*"};
  options.precisions = {Precision::fp16, Precision::fp32};
  const auto groups = plan_groups(options, DeviceKind::host);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_FALSE(groups[0].implied);
  EXPECT_TRUE(std::any_of(groups[0].kernels.begin(), groups[0].kernels.end(),
                          [](const auto& kernel) { return kernel.label() == "cpu_csr"; }));
}

TEST(Plan, ARunWithoutAGpuGetsEigenInFp32AndInItsOwnPrecisionAsBaselines) {
  if (Registry<Kernel>::instance().find("eigen_csr") == nullptr) GTEST_SKIP() << "built without";
  RunOptions options;
  options.kernels = {"cpu_csr"};
  options.precisions = {Precision::fp16};
  const auto groups = plan_groups(options, DeviceKind::host);
  ASSERT_EQ(groups.size(), 3U);
  for (const auto& [group, precision] :
       {std::pair(groups[0], Precision::fp16), {groups[1], Precision::fp32}}) {
    EXPECT_TRUE(group.implied);
    EXPECT_EQ(group.precision, precision);
    ASSERT_EQ(group.kernels.size(), 1U);
    EXPECT_EQ(group.kernels[0].label(), "eigen_csr");
  }
  EXPECT_EQ(groups[2].kernels[0].label(), "cpu_csr");
}

TEST(Plan, AKernelWithAPurposeOfItsOwnRunsOnlyWhenNamed) {
  const auto has_any = [](const std::vector<std::string>& patterns) {
    RunOptions options;
    options.kernels = patterns;
    const auto groups = plan_groups(options, DeviceKind::host);
    return std::any_of(groups.begin(), groups.end(), [](const PrecisionGroup& group) {
      return std::any_of(group.kernels.begin(), group.kernels.end(), [](const KernelChoice& one) {
        return !one.kernel->info().purpose.empty();
      });
    });
  };
  EXPECT_FALSE(has_any({}));
  const auto all = Registry<Kernel>::instance().sorted();
  if (std::all_of(all.begin(), all.end(),
                  [](const Kernel* kernel) { return kernel->info().purpose.empty(); }))
    GTEST_SKIP() << "built without CUDA";
  EXPECT_TRUE(has_any({"*"}));
}

TEST(Plan, ExcludingEverythingIsAnError) {
  RunOptions options;
  options.kernels = {"cpu_csr"};
  options.exclude = {"cpu*"};
  EXPECT_THROW(plan_groups(options, DeviceKind::host), Error);
}

}  // namespace
}  // namespace spmmbench
