#include "measure/bench.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "fake_device.hpp"
#include "gpu/backend.hpp"
#include "multiply.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

constexpr std::int64_t kN = 5;

CsrMatrix matrix() { return {3, 4, {0, 2, 3, 3}, {0, 3, 1}, {0.5F, -0.25F, 2.0F}}; }

Launch product_of(CsrMatrix a) {
  return [a = std::move(a)](const DenseView& b, const DenseView& c, Stream) { multiply(a, b, c); };
}

ResultRow measured(const BroughtProduct& product, bool packed = false,
                   std::unique_ptr<Device> device = open_host_device()) {
  BenchSettings settings;
  settings.matrix = "small";
  settings.shape.n = kN;
  settings.packed = packed;
  settings.limits = {.noise = 0, .min_samples = 5, .max_samples = 5, .max_seconds = 9};
  return Bench(matrix(), settings, std::move(device)).run(product);
}

TEST(Bench, ARightProductGetsTheRowOfAKernel) {
  const ResultRow row = measured({.name = "mine", .launch = product_of(matrix())});
  EXPECT_EQ(row.status, Status::ok) << row.reason;
  EXPECT_EQ(row.kernel, "mine");
  EXPECT_EQ(row.matrix.name, "small");
  EXPECT_EQ(row.matrix.nnz, 3);
  EXPECT_EQ(row.hot->n(), 5);
  EXPECT_EQ(row.cold->n(), 5);
  EXPECT_TRUE(row.exact->passed);
  EXPECT_GT(row.of_bound, 0);
}

TEST(Bench, ARowSaysThatItsSamplesWereRepeatedOnADeviceThatWasSlow) {
  class SlowAtFirst final : public FakeDevice {
    ClockState clocks() override {
      ClockState state;
      state.throttle_reasons = asked_++ == 0 ? 0x4 : 0;
      return state;
    }
    int asked_ = 0;
  };
  const ResultRow row = measured({.name = "mine", .launch = product_of(matrix())}, false,
                                 std::make_unique<SlowAtFirst>());
  EXPECT_EQ(row.status, Status::ok) << row.reason;
  EXPECT_EQ(row.metrics.at("throttled_repeats"), 1);
  EXPECT_FALSE(row.metrics.contains("throttle_reasons"))
      << "the samples that it keeps were not slow";
  EXPECT_EQ(row.hot->n(), 5);
}

TEST(Bench, LinesOfOtherLibrariesHaveNoGap) {
  for (const bool packed : {false, true}) {
    std::int64_t ld_of_b = 0, ld_of_c = 0;
    BroughtProduct product{.name = "mine"};
    product.launch = [&](const DenseView& b, const DenseView& c, Stream) {
      ld_of_b = b.ld;
      ld_of_c = c.ld;
      multiply(matrix(), b, c);
    };
    EXPECT_EQ(measured(product, packed).status, Status::ok);
    EXPECT_EQ(ld_of_b, packed ? kN : 8);
    EXPECT_EQ(ld_of_c, packed ? kN : 8);
  }
}

TEST(Bench, TheExactTestFindsANonzeroThatIsALittleOff) {
  CsrMatrix off = matrix();
  off.values[1] = std::nextafter(off.values[1], 0.0F);
  const ResultRow row = measured({.name = "off", .launch = product_of(off)});
  EXPECT_EQ(row.status, Status::wrong);
  EXPECT_FALSE(row.exact->passed);
}

TEST(Bench, AProductThatCanHaveOtherValuesIsTestedWithThem) {
  int made = 0;
  BroughtProduct product{.name = "mine", .launch = product_of(matrix())};
  product.with_values = [&](const CsrMatrix& a) {
    ++made;
    CsrMatrix other = matrix();
    other.values = a.values;
    for (const float value : a.values) EXPECT_EQ(value * 8192, std::round(value * 8192));
    return product_of(other);
  };
  EXPECT_TRUE(measured(product).exact->passed);
  EXPECT_EQ(made, 1);
}

// A product that leaves C in memory of its own. `works`: in a launch of that number, from 0.
BroughtProduct returning(std::vector<float>& own, int& launches, std::function<bool(int)> works) {
  const auto own_view = [&own](DenseView c) {
    own.resize(static_cast<std::size_t>(c.rows * c.ld));
    c.data = own.data();
    return c;
  };
  BroughtProduct product{.name = "returns"};
  product.launch = [=, &launches](const DenseView& b, const DenseView& c, Stream) {
    if (works(launches++)) multiply(matrix(), b, own_view(c));
  };
  product.take_c = [=, &own](const DenseView& c, Stream) {
    std::memcpy(c.data, own_view(c).data, c.bytes());
    own.assign(own.size(), std::numeric_limits<float>::quiet_NaN());
  };
  return product;
}

TEST(Bench, AProductMayReturnItsC) {
  std::vector<float> own;
  int launches = 0;
  const ResultRow row = measured(returning(own, launches, [](int) { return true; }));
  EXPECT_EQ(row.status, Status::ok) << row.reason;
  EXPECT_TRUE(row.exact->passed);
}

TEST(Bench, AProductThatReturnsAnEarlierCIsWrongWheneverItDoes) {
  for (const int first : {1, 3, 4, 100, 1000}) {
    std::vector<float> own;
    int launches = 0;
    const ResultRow row = measured(returning(own, launches, [=](int at) { return at < first; }));
    const bool all_worked = launches <= first;  // on a slow machine a case has fewer than 1000
    ASSERT_TRUE(!all_worked || first == 1000);
    EXPECT_EQ(row.status, all_worked ? Status::ok : Status::wrong) << first;
    EXPECT_EQ(row.hot.has_value(), all_worked) << first;
  }
}

TEST(Bench, WhatALaunchThrowsIsTheReasonOfItsRow) {
  BroughtProduct product{.name = "fails"};
  product.launch = [](const DenseView&, const DenseView&, Stream) {
    throw Error("no such kernel");
  };
  const ResultRow row = measured(product);
  EXPECT_EQ(row.status, Status::failed);
  EXPECT_EQ(row.reason, "exact test: no such kernel");
}

}  // namespace
}  // namespace spmmbench
