#include "gpu/scaled_launches.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "gpu/backend.hpp"

namespace spmmbench {
namespace {

// Fills C with 3.
class Threes final : public Plan {
 public:
  void launch(const DenseView&, const DenseView& c, Stream) override {
    for (std::int64_t i = 0; i < c.lines() * c.ld; ++i) store_element(c.type, c.data, i, 3);
    last = c.data;
  }
  PlanReport report() const override { return {}; }
  const void* last = nullptr;
};

TEST(ScaledLaunches, AnyKernelsProductIsScaledAndAddedInEveryTypeOfC) {
  const std::unique_ptr<Device> device = open_host_device();
  for (const ElementType type :
       {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::f64}) {
    std::vector<double> memory(64);
    DenseView c = make_dense_view(3, 5, Layout::row_major, type);
    c.data = memory.data();
    for (std::int64_t i = 0; i < c.rows * c.ld; ++i)
      store_element(type, c.data, i, static_cast<double>(i % 8));
    Threes plan;
    const KernelInfo kernel;
    ScaledLaunches launches(plan, kernel, *device);
    EXPECT_EQ(launches.device_bytes(), 0U);
    launches.launch({}, c, {2, -0.5}, {});
    EXPECT_EQ(launches.device_bytes(), scaling_bytes(kernel, {2, -0.5}, c));
    for (std::int64_t i = 0; i < c.rows; ++i)
      for (std::int64_t j = 0; j < c.cols; ++j)
        EXPECT_EQ(load_element(type, c.data, i * c.ld + j),
                  6 - 0.5 * static_cast<double>((i * c.ld + j) % 8));
    store_element(type, c.data, 0, std::numeric_limits<double>::quiet_NaN());
    launches.launch({}, c, {0.5, 0}, {});
    EXPECT_EQ(load_element(type, c.data, 0), 1.5) << "C is not read";
  }
}

TEST(ScaledLaunches, PlainScalarsCostNothing) {
  const std::unique_ptr<Device> device = open_host_device();
  std::vector<float> memory(16);
  DenseView c = make_dense_view(2, 4, Layout::row_major, ElementType::f32);
  c.data = memory.data();
  Threes plan;
  const KernelInfo kernel;
  ScaledLaunches launches(plan, kernel, *device);
  launches.launch({}, c, {1, 0}, {});
  EXPECT_EQ(plan.last, c.data);
  EXPECT_EQ(launches.device_bytes(), 0U);
  EXPECT_EQ(scaling_bytes(kernel, {1, 0}, c), 0U);
}

TEST(ScaledLaunches, TheProductHasTheRowsThatAKernelMayWrite) {
  KernelInfo kernel;
  kernel.form.c_row_multiple = 16;
  const DenseView c = make_dense_view(17, 4, Layout::row_major, ElementType::f32);
  EXPECT_EQ(scaling_bytes(kernel, {2, 0}, c), 32 * 4 * sizeof(float));
  kernel.flags = {kTakesScalars};
  EXPECT_EQ(scaling_bytes(kernel, {2, 0}, c), 0U);
}

}  // namespace
}  // namespace spmmbench
