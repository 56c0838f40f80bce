#include "measure/bit_checks.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>

#include "gpu/backend.hpp"
#include "spmmbench/random.hpp"
#include "spmmbench/sum_order.hpp"
#include "verify/predicted_sum.hpp"

namespace spmmbench {
namespace {

class TensorKernel final : public Kernel {
 public:
  TensorKernel() { info_.accumulation = Accumulation::fp32_tensor_core; }
  const KernelInfo& info() const override { return info_; }
  Support supports(const Problem&, const DeviceInfo&) const override { return Support::yes(0); }
  std::unique_ptr<Prepared> prepare(const SparseOperand&, const Options&, Device&,
                                    StageTimer&) const override {
    return nullptr;
  }

 private:
  KernelInfo info_;
};

class PlanWithoutOrder : public Plan {
 public:
  void launch(const DenseView&, const DenseView&, Stream) override {}
  PlanReport report() const override { return {}; }
};

// Every nonzero has an instruction of its own. Odd rows have no order.
class PlanWithOrder final : public PlanWithoutOrder, public OrderedSums {
 public:
  explicit PlanWithOrder(const CsrMatrix& a) : a_(a) {}
  void will_ask(std::span<const std::int64_t> rows) override {
    told_.insert(rows.begin(), rows.end());
  }
  std::optional<SumOrder> sum_order(std::int64_t row, std::int64_t /*column*/) override {
    was_told = was_told && told_.contains(row);
    if (row % 2 != 0) return std::nullopt;
    SumOrder order;
    for (std::int64_t e = a_.row_ptr[row]; e < a_.row_ptr[row + 1]; ++e) {
      order.entries.push_back(e);
      order.instructions.push_back(order.entries.size());
    }
    order.parts = {order.instructions.size()};
    return order;
  }

  bool was_told = true;  // of each row, before it was asked of it

 private:
  const CsrMatrix& a_;
  std::set<std::int64_t> told_;  // of which rows it will be asked
};

TEST(BitChecks, CompareEveryBitOfTheElementsOfWhichThePlanStatesTheOrder) {
  constexpr std::int64_t kSize = 20;
  CsrMatrix a{kSize, kSize, {0}, {}, {}};
  for (std::int64_t i = 0; i < kSize; ++i) {
    for (std::int64_t k = i % 4; k < kSize; k += 3) {
      a.col_idx.push_back(static_cast<std::int32_t>(k));
      a.values.push_back(static_cast<float>(uniform_in(Precision::fp16, 1, i, k)));
    }
    a.row_ptr.push_back(static_cast<std::int64_t>(a.col_idx.size()));
  }
  const std::unique_ptr<Device> device = open_host_device();
  const TensorKernel kernel;
  const KernelChoice choice{&kernel, {}};
  for (const Layout layout : {Layout::row_major, Layout::col_major})
    for (const ElementType type : {ElementType::f32, ElementType::f16}) {
      const Operands operands =
          make_operands(a, kSize, Precision::fp16, type, layout, nullptr, 2, *device);
      CaseInput input;
      input.choice = &choice;
      input.problem.a = &a;
      input.problem.precision = Precision::fp16;
      input.operands = &operands;
      input.device = device.get();
      PlanWithOrder plan(a);
      const DenseView &b = operands.b, &c = operands.c;
      const auto place = [](const DenseView& view, std::int64_t i, std::int64_t j) {
        return view.layout == Layout::row_major ? i * view.ld + j : j * view.ld + i;
      };
      for (std::int64_t i = 0; i < kSize; i += 2)
        for (std::int64_t j = 0; j < kSize; ++j)
          store_element(
              type, c.data, place(c, i, j),
              predicted_sums(
                  *PlanWithOrder(a).sum_order(i, j), kernel.info(), Precision::fp16, a,
                  [&](std::int64_t k) { return load_element(b.type, b.data, place(b, k, j)); }, 1)
                  .at(0));
      const BitCheck right = check_bits(input, plan);
      EXPECT_GT(right.predicted, 300);
      EXPECT_EQ(right.equal, right.predicted);
      EXPECT_TRUE(plan.was_told);
      auto* const bytes = static_cast<unsigned char*>(c.data);
      for (std::size_t i = 0; i < c.bytes(); i += bytes_of(type)) bytes[i] ^= 1U;  // the last bit
      EXPECT_EQ(check_bits(input, plan).equal, 0);
      PlanWithoutOrder silent;
      EXPECT_EQ(check_bits(input, silent).predicted, 0);
    }
}

}  // namespace
}  // namespace spmmbench
