#include "measure/calls_curve.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "fake_device.hpp"
#include "matrices.hpp"

namespace spmmbench {
namespace {

// What happens, in order: f a flush, p a preparation, o in it a row order that is computed, b a
// plan, l a launch.
std::string events;

class CountedDevice final : public FakeDevice {
  void flush_cache() override { events += 'f'; }
};

class CountedPlan final : public Plan {
  void launch(const DenseView&, const DenseView&, Stream) override { events += 'l'; }
  PlanReport report() const override { return {}; }
};

class CountedPrepared final : public Prepared {
  std::unique_ptr<Plan> bind(const Shape&, StageTimer&) override {
    events += 'b';
    return std::make_unique<CountedPlan>();
  }
};

class CountedKernel final : public Kernel {
 public:
  const KernelInfo& info() const override { return info_; }
  Support supports(const Problem&, const DeviceInfo&) const override { return Support::yes(0); }
  std::unique_ptr<Prepared> prepare(const SparseOperand& a, const Options&, Device&,
                                    StageTimer& stages) const override {
    EXPECT_EQ(a.on_device, nullptr) << "the copy of A counts";
    events += 'p';
    EXPECT_TRUE(a.orders->get("degree", stages).empty()) << "A is in this order";
    a.orders->get("rcm", stages);
    if (stages.stages_ms().contains("reorder")) events += 'o';
    return std::make_unique<CountedPrepared>();
  }

 private:
  KernelInfo info_;
};

TEST(CallsCurve, EachTimeIsOfAWholeProgramFromAFlushedCache) {
  CountedDevice device;
  const CountedKernel kernel;
  const KernelChoice choice{&kernel, {}};
  const CsrMatrix a = testing::from_rows(2, {{0}, {0, 1}});
  const DeviceCsr resident;
  SparseOperand operand;
  operand.a = &a;
  operand.on_device = &resident;
  const Options options;
  const std::vector<std::int64_t> calls = {1, 3};
  const Operands operands =
      make_operands(a, 4, Precision::fp32, ElementType::f32, Layout::row_major, nullptr, 1, device);
  events.clear();
  const auto curve = measure_calls_curve(choice, Problem{operand, Shape{.n = 4}, options},
                                         Spec::parse("degree"), operands, calls, device);
  ASSERT_EQ(curve.size(), 2U);
  EXPECT_EQ(curve[0].first, "1");
  EXPECT_EQ(curve[1].first, "3");
  for (const auto& [count, us] : curve) EXPECT_GT(us, 0);
  EXPECT_EQ(events, "fpoblfpoblfpoblfpoblllfpoblllfpoblll");
}

}  // namespace
}  // namespace spmmbench
