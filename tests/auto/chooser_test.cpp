// What `auto` chooses by the sizes of A and by a look at it.

#include <string>

#include "planted_kernels.hpp"
#include "select/rank.hpp"

namespace spmmbench {
namespace {

TEST_F(AutoKernel, FewCallsRunWhatTheSizesOfATellWithoutALookAtIt) {
  const auto chosen = [&](const std::string& options) {
    const auto plan = prepare(options)->bind({.n = 8}, stages_);
    return std::pair{pick(*plan).kernel, plan->report().metrics.contains("feature_rows")};
  };
  EXPECT_EQ(chosen("calls=1"), std::pair(std::string("csr_merge"), false));
  EXPECT_EQ(chosen("calls=30"), std::pair(std::string("jagged_slices"), false));
  EXPECT_TRUE(chosen("calls=1&tune=2").second) << "it is told to measure";
  EXPECT_TRUE(chosen("calls=100000").second);
}

TEST_F(AutoKernel, WhatTheSizesOfATellIsPreparedBeforeALookAtIt) {
  const DeviceCsr there = copy_that_took(0);
  operand_.on_device = &there;
  const auto prepared = prepare("");
  const auto plan = prepared->bind({.n = 8}, stages_);
  launch(*plan, 4);
  EXPECT_EQ(pick(*plan).kernel, "csr_merge");
  launch(*plan, 9);
  EXPECT_EQ(pick(*plan).kernel, "jagged_slices");
  EXPECT_FALSE(plan->report().metrics.contains("feature_rows"));
  launch(*plan, kMany);
  EXPECT_TRUE(plan->report().metrics.contains("feature_rows"));
}

TEST_F(AutoKernel, AFullMatrixIsMultipliedAsADenseOneInFp8Too) {
  matrix_ = testing::drawn(512, 512, 50);
  operand_.precision = Precision::fp8_e4m3;
  for (const Layout layout : {Layout::row_major, Layout::col_major})
    EXPECT_EQ(pick(*prepare("tune=1")->bind({.n = 128, .layout = layout}, stages_)).kernel,
              "dense_cluster");
}

#ifdef SPMMBENCH_TEST_RATES
// An A that lies on the device alone.
struct Unread : LazyCsr {
  const CsrMatrix& get() override { throw Error("A is read on the host"); }
};

TEST_F(AutoKernel, AGlanceAtAPaysSoonerWhereLongRowsMayShareColumns) {
  Unread unread;
  DeviceCsr sizes{};
  operand_.a = HostCsr(&unread);
  operand_.on_device = &sizes;
  const auto glances = [&](std::int64_t of_row, std::int64_t n, const std::string& calls) {
    constexpr std::int64_t kNonzeros = 1'600'000;
    sizes.rows = sizes.cols = kNonzeros / of_row;
    sizes.nnz = sizes.rows * of_row;
    glanced = features_of_sizes(sizes.rows, sizes.cols, sizes.nnz);
    const auto prepared = prepare("calls=" + calls);
    return prepared->bind({.n = n}, stages_)->report().metrics.contains("feature_gathered_8");
  };
  EXPECT_TRUE(glances(20, 32, "30"));
  EXPECT_FALSE(glances(10, 32, "30")) << "its rows are short";
  EXPECT_FALSE(glances(40, 8, "30")) << "rows of B are narrow";
  EXPECT_TRUE(glances(40, 8, "120")) << "more calls take long enough";
  EXPECT_FALSE(glances(40, 32, "3")) << "so few calls take less than a glance is worth";
  EXPECT_TRUE(glances(40, 32, "90"));
  EXPECT_THROW(glances(40, 32, "120"), DeviceError) << "2.5 ms are worth a whole look";
}
#endif

TEST_F(AutoKernel, TheChoiceForAWidthDoesNotDependOnTheWidthsBefore) {
  const auto together = prepare("tune=1");
  for (const std::int64_t n : {1, 8, 16, 32, 64, 128, 256, 512}) {
    const auto alone = prepare("tune=1");
    EXPECT_EQ(pick(*together->bind({.n = n}, stages_)).kernel,
              pick(*alone->bind({.n = n}, stages_)).kernel)
        << n;
  }
}

}  // namespace
}  // namespace spmmbench
