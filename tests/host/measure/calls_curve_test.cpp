#include "measure/calls_curve.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "fake_device.hpp"
#include "gpu/csr_on_device.hpp"
#include "matrices.hpp"
#include "report/answer.hpp"

namespace spmmbench {
namespace {

// What happens, in order: f a flush, d a preparation from A on the device, p any preparation, h in
// it a copy of a row pointer to the host, o a row order that is computed, b a plan, l a launch.
std::string events;

// A clock that only these move. Binary fractions, so that their sums are exact.
double now_s = 0, pace = 1;
constexpr double kFlushS = 1, kPrepareS = 1 / 8.0, kBindS = 1 / 16.0, kLaunchS = 1 / 256.0;

class CountedDevice final : public FakeDevice {
  void flush_cache() override {
    events += 'f';
    now_s += pace * kFlushS;
  }
  void download(void* host, const void* device, std::size_t bytes) override {
    FakeDevice::download(host, device, bytes);
    if (bytes == kRowPointerBytes) events += 'h';
  }
  static constexpr std::size_t kRowPointerBytes = 3 * sizeof(std::int64_t);
};

// So often as times as long as these are taken.
std::string repeated(std::string_view once, int times = kLeastCurveRepeats) {
  static_assert(kLeastCurveRepeats * kPrepareS * 1e6 > kCurveUs);
  std::string all;
  for (int i = 0; i < times; ++i) all += once;
  return all;
}

class CountedPlan final : public Plan {
  void launch(const DenseView&, const DenseView&, Stream) override {
    events += 'l';
    now_s += pace * kLaunchS;
  }
  PlanReport report() const override { return {}; }
};

class CountedPrepared final : public Prepared {
  std::unique_ptr<Plan> bind(const Shape&, StageTimer&) override {
    events += 'b';
    now_s += pace * kBindS;
    return std::make_unique<CountedPlan>();
  }
};

class CountedKernel final : public Kernel {
 public:
  explicit CountedKernel(bool prepares_on_device) { info_.prepares_on_device = prepares_on_device; }
  const KernelInfo& info() const override { return info_; }
  Support supports(const Problem&, const DeviceInfo&) const override { return Support::yes(0); }
  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options&, Device&,
                                    StageTimer& stages) const override {
    if (a.on_device != nullptr) {
      EXPECT_EQ(a.on_device->nnz, 3);
      events += 'd';
    }
    events += 'p';
    now_s += pace * kPrepareS;
    EXPECT_TRUE(a.orders->get("degree", stages).empty()) << "A is in this order";
    a.orders->get("rcm", stages);
    if (stages.stages_ms().contains("reorder")) events += 'o';
    return std::make_unique<CountedPrepared>();
  }

 private:
  KernelInfo info_;
};

std::vector<std::pair<std::string, double>> curve_of(const CountedKernel& kernel,
                                                     DeviceKind memory = DeviceKind::host) {
  CountedDevice device;
  const KernelChoice choice{&kernel, {}};
  const CsrMatrix a = testing::from_rows(2, {{0}, {0, 1}});
  const CsrOnDevice resident(a, Precision::fp32, device);
  SparseOperand operand;
  operand.a = &a;
  if (memory == DeviceKind::cuda) operand.on_device = &resident.view();
  const Options options;
  const std::vector<std::int64_t> calls = {1, 3};
  const Operands operands =
      make_operands(a, 4, Precision::fp32, ElementType::f32, Layout::row_major, nullptr, 1, device);
  events.clear();
  return measure_calls_curve(choice, Problem{operand, Shape{.n = 4}, options},
                             Spec::parse("degree"), operands, calls, device, {}, 1,
                             [] { return now_s; });
}

TEST(CallsCurve, EachTimeIsOfAWholeProgramFromAFlushedCache) {
  const auto curve = curve_of(CountedKernel(false));
  ASSERT_EQ(curve.size(), 2U);
  EXPECT_EQ(curve[0].first, "1");
  EXPECT_EQ(curve[1].first, "3");
  const Cost sum{(kPrepareS + kBindS) * 1e3, kLaunchS * 1e6};
  EXPECT_DOUBLE_EQ(curve[0].second, sum.total_us(1)) << "a flush is no part of it";
  EXPECT_DOUBLE_EQ(curve[1].second, sum.total_us(3));
  EXPECT_EQ(events, repeated("fpobl") + repeated("fpoblll"));
}

TEST(CallsCurve, ShortTimesAreTakenMoreOften) {
  pace = 1e-6;
  curve_of(CountedKernel(false));
  pace = 1;
  EXPECT_EQ(events, repeated("fpobl", kMostCurveRepeats) + repeated("fpoblll", kMostCurveRepeats));
}

TEST(CallsCurve, AIsCopiedToTheDeviceEachTimeWhereTheKernelPreparesThere) {
  curve_of(CountedKernel(true));
  EXPECT_EQ(events, repeated("fdpobl") + repeated("fdpoblll"));
}

TEST(CallsCurve, AThatLiesOnTheDeviceIsCopiedToTheHostByWhatReadsItThere) {
  for (const bool prepares_on_device : {false, true}) {
    curve_of(CountedKernel(prepares_on_device), DeviceKind::cuda);
    EXPECT_EQ(events, repeated("fdphobl") + repeated("fdphoblll"));
  }
}

}  // namespace
}  // namespace spmmbench
