// `auto` that starts at once: its launches are right while it changes what it launches.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "devices.hpp"
#include "gpu/csr_on_device.hpp"
#include "select/device_rates.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/random.hpp"
#include "spmmbench/registry.hpp"
#include "verify/bound.hpp"
#include "verify/reference.hpp"

namespace spmmbench::test {
namespace {

constexpr std::int64_t kBandRows = 20'000, kBandEntries = 16, kBandN = 64;
constexpr Precision kBandPrecision = Precision::fp16;
constexpr int kSettlingLaunches = 1 << 15;
constexpr std::uint64_t kMostBytesToHost = std::uint64_t{64} << 10;  // bytes a plan

// Rows of columns near the diagonal, so that kernels with a format of their own gain.
CsrMatrix band_of_columns() {
  CsrMatrix out;
  out.rows = out.cols = kBandRows;
  for (std::int64_t row = 0; row < kBandRows; ++row) {
    const std::int64_t first = std::min(row / 8 * 8, kBandRows - 2 * kBandEntries);
    for (std::int64_t i = 0; i < kBandEntries; ++i) {
      out.col_idx.push_back(static_cast<std::int32_t>(first + 2 * i));
      out.values.push_back(round_to(kBandPrecision, uniform_at(1, row, i)));
    }
    out.row_ptr.push_back(static_cast<std::int64_t>(out.col_idx.size()));
  }
  return out;
}

class AutoOnDevice : public testing::Test {
 protected:
  void open(Device& device) {
    device_ = &device;
    orders_ = make_row_orders(a_, {"none", {}});
    b_ = make_b_view(kBandRows, kBandN, Layout::row_major, storage_type(kBandPrecision));
    c_ = make_dense_view(kBandRows, kBandN, Layout::row_major, ElementType::f32);
    b_memory_ = device.allocate(b_.bytes());
    c_memory_ = device.allocate(c_.bytes());
    b_.data = b_memory_.data();
    c_.data = c_memory_.data();
    device.fill_uniform(b_, 1, kBandPrecision);
    reference_ = make_reference(a_, {}, b_, device);
    const SparseOperand operand{&a_, {}, kBandPrecision, orders_.get()};
    prepared_ = kernel_.prepare(operand, {}, device, stages_);
    plan_ = prepared_->bind({.n = kBandN}, stages_);
  }
  void launch() { plan_->launch(b_, c_, device_->stream()); }
  bool is_right(const std::function<void()>& run) {
    device_->fill_bytes(c_.data, 0xFF, c_.bytes());  // NaN
    run();
    device_->synchronize();
    return reference_->check(c_, error_bound(kernel_.info(), kBandPrecision, ElementType::f32)).ok;
  }
  std::string launched() const { return plan_->report().pick->kernel; }

  const Kernel& kernel_ = Registry<Kernel>::instance().at("auto");
  const CsrMatrix a_ = band_of_columns();
  Device* device_ = nullptr;
  std::unique_ptr<RowOrders> orders_;
  DenseView b_, c_;
  Buffer b_memory_, c_memory_;
  std::unique_ptr<ReferenceChecker> reference_;
  StageTimer stages_;
  std::unique_ptr<Prepared> prepared_;
  std::unique_ptr<Plan> plan_;
};

TEST_F(AutoOnDevice, IsRightBeforeAndAfterEveryChangeOfWhatItLaunches) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  open(device);
  EXPECT_EQ(launched(), "csr_merge");
  EXPECT_TRUE(is_right([&] { launch(); }));
  std::set<std::string> kernels = {launched()};
  for (int i = 1; i < kSettlingLaunches; ++i) {
    if (!plan_->prepares_next()) {
      launch();
      continue;
    }
    EXPECT_TRUE(is_right([&] { launch(); })) << launched() << " after " << i << " launches";
    kernels.insert(launched());
  }
  EXPECT_TRUE(is_right([&] { launch(); })) << launched();
  EXPECT_GT(kernels.size(), 1U) << "it launches what it began with";
}

TEST_F(AutoOnDevice, AGraphLaunchesWhatItCapturedWhateverIsLaunchedLater) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  open(device);
  launch();
  const std::function<double()> graph = device.record([&] { launch(); }, 1);
  EXPECT_EQ(launched(), "csr_merge");
  EXPECT_TRUE(is_right([&] { graph(); }));
  for (int i = 0; i < kSettlingLaunches; ++i) launch();
  EXPECT_NE(launched(), "csr_merge");
  EXPECT_TRUE(is_right([&] { graph(); }));
  EXPECT_TRUE(is_right([&] { launch(); }));
}

TEST_F(AutoOnDevice, SettledItIsRightAndPreparesNothingMore) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  open(device);
  plan_->settle(stages_);
  const std::string settled = launched();
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(plan_->prepares_next());
    launch();
  }
  EXPECT_TRUE(is_right([&] { launch(); }));
  EXPECT_EQ(launched(), settled);
}

class BandOnTheDevice final : public LazyCsr {
 public:
  const CsrMatrix& get() override { throw Error("A is read on the host"); }
};

// Whether a plan of auto says that it has looked at A.
bool has_looked(const Plan& plan) { return plan.report().metrics.contains("feature_gathered_8"); }

TEST_F(AutoOnDevice, FewCallsOfAnAOnTheDeviceAloneAreRightBySizesAndByAGlance) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  open(device);
  const CsrOnDevice resident(a_, kBandPrecision, device);
  BandOnTheDevice unread;
  for (const auto& [calls, looks] : {std::pair{"auto?calls=1", false}, {"auto?calls=200", true}}) {
    SCOPED_TRACE(calls);
    SparseOperand operand{HostCsr(&unread), {}, kBandPrecision, orders_.get()};
    operand.on_device = &resident.view();
    const Options options = Spec::parse(calls).options;
    const std::uint64_t before = device.bytes_to_host();
    const auto prepared = kernel_.prepare(operand, options, device, stages_);
    plan_ = prepared->bind({.n = kBandN}, stages_);
    EXPECT_LT(device.bytes_to_host() - before, kMostBytesToHost);
    EXPECT_EQ(has_looked(*plan_), looks);
    EXPECT_FALSE(plan_->report().pick->measured());
    EXPECT_TRUE(is_right([&] { launch(); })) << launched();
    plan_.reset();
  }
}

TEST_F(AutoOnDevice, RatesAreMeasuredForCallsThatTakeFarLongerAlone) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  open(device);
  const DeviceRates known = known_rates(device.info());
  const SparseOperand operand{&a_, {}, kBandPrecision, orders_.get()};
  for (const auto& [calls, measures] :
       {std::pair{"auto?calls=5000", false}, {"auto?calls=100000000&tune=1", true}}) {
    SCOPED_TRACE(calls);
    set_rates(device.info(), {});
    const auto prepared = kernel_.prepare(operand, Spec::parse(calls).options, device, stages_);
    plan_ = prepared->bind({.n = kBandN}, stages_);
    EXPECT_EQ(known_rates(device.info()).gather_bytes_per_second > 0, measures);
    EXPECT_TRUE(is_right([&] { launch(); })) << launched();
    plan_.reset();
  }
  set_rates(device.info(), known);
}

}  // namespace
}  // namespace spmmbench::test
