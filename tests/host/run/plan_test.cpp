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
  Cases cases;
  cases.kernels = {"no_such_kernel"};
  try {
    plan_groups(cases, {}, DeviceKind::host);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("cpu_csr"), std::string::npos);
  }
}

TEST(Plan, AMatchedKernelMustHaveTheOption) {
  Cases cases;
  cases.kernels = {"cpu_csr?colour=blue"};
  EXPECT_THROW(plan_groups(cases, {}, DeviceKind::host), Error);
}

TEST(Plan, OneGroupPerPrecisionWithoutBaselines) {
  Cases cases;
  cases.baselines = false;
  cases.kernels = {"cpu*"};
  cases.precisions = {Precision::fp16, Precision::fp32};
  const auto groups = plan_groups(cases, {}, DeviceKind::host);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_FALSE(groups[0].implied);
  EXPECT_TRUE(std::any_of(groups[0].kernels.begin(), groups[0].kernels.end(),
                          [](const auto& kernel) { return kernel.label() == "cpu_csr"; }));
}

TEST(Plan, ARunWithoutAGpuGetsEigenInFp32AndInItsOwnPrecisionAsBaselines) {
  if (Registry<Kernel>::instance().find("eigen_csr") == nullptr) GTEST_SKIP() << "built without";
  Cases cases;
  cases.kernels = {"cpu_csr"};
  cases.precisions = {Precision::fp16};
  const auto groups = plan_groups(cases, {}, DeviceKind::host);
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

TEST(Plan, ProductsInFp64HaveACOfFp64AndABaselineInFp64) {
  if (Registry<Kernel>::instance().find("eigen_csr") == nullptr) GTEST_SKIP() << "built without";
  Cases cases;
  cases.kernels = {"cpu_csr"};
  cases.precisions = {Precision::fp64, Precision::fp32};
  cases.c_type = ElementType::f16;
  const auto groups = plan_groups(cases, {}, DeviceKind::host);
  const auto in_fp64 = [](const PrecisionGroup& group) {
    return group.precision == Precision::fp64;
  };
  EXPECT_EQ(std::ranges::count_if(groups, in_fp64), 2);
  for (const PrecisionGroup& group : groups) {
    if (in_fp64(group)) EXPECT_EQ(group.c_type, ElementType::f64);
    else EXPECT_NE(group.c_type, ElementType::f64);
  }
}

TEST(Plan, ExcludingEverythingIsAnError) {
  Cases cases;
  cases.kernels = {"cpu_csr"};
  cases.exclude = {"cpu*"};
  EXPECT_THROW(plan_groups(cases, {}, DeviceKind::host), Error);
}

}  // namespace
}  // namespace spmmbench
