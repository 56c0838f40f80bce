// The order of sums that a plan states (spmmbench/sum_order.hpp): every element of C is predicted
// from it to the bit, for every kernel that states one.

#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "devices.hpp"
#include "spmmbench/random.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/sum_order.hpp"
#include "verify/predicted_sum.hpp"

namespace spmmbench::test::sum_orders {
namespace {

constexpr std::int64_t kRows = 1'000, kColumns = 700, kN = 1'000;  // 10^6 elements of C

struct Case {
  const Kernel* kernel;
  Precision precision;
  Layout layout;
  Options options = {};
};

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const Kernel* kernel : Registry<Kernel>::instance().sorted())
    if (kernel->info().accumulation == Accumulation::fp32_tensor_core &&
        kernel->info().purpose.empty() && !kernel->info().baseline)
      for (const Precision precision : kernel->info().precisions)
        for (const Layout layout : kernel->info().layouts)
          if (precision != Precision::fp32 && precision != Precision::fp64)
            out.push_back({kernel, precision, layout});
  for (Case c : std::vector<Case>(out))
    for (const Variant& variant : c.kernel->info().variants)
      if (is_scaled(c.precision) && variant.promoted_columns) {
        c.options.set(variant.option, variant.value);
        out.push_back(c);
      }
  return out;
}

std::string name_of(const Case& c) {
  std::string name = c.kernel->info().name + "__" + std::string(to_string(c.precision)) +
                     (c.layout == Layout::row_major ? "__row" : "__col");
  for (const auto& [key, value] : c.options.values()) name += "__" + key + "_" + value;
  return name;
}
void PrintTo(const Case& c, std::ostream* out) { *out << name_of(c); }  // found by GoogleTest

// Rows of 0 to some 100 nonzeros, near one another in blocks, with values of several binades.
CsrMatrix matrix(Precision precision) {
  CsrMatrix a{kRows, kColumns, {0}, {}, {}};
  for (std::int64_t i = 0; i < kRows; ++i) {
    for (std::int64_t k = 0; k < kColumns; ++k) {
      const bool in_block = hash_position(1, i / 64, k / 32) % 4 == 0;
      const std::uint64_t hash = hash_position(2, i, k);
      if (!in_block || hash % 2 == 0) continue;
      const float small = hash / 2 % 8 == 0 ? 0x1p-9F : 1.0F;
      a.col_idx.push_back(static_cast<std::int32_t>(k));
      a.values.push_back(
          static_cast<float>(round_to(precision, small * uniform_in(precision, 3, i, k))));
    }
    a.row_ptr.push_back(static_cast<std::int64_t>(a.col_idx.size()));
  }
  return a;
}

class SumOrderTest : public testing::TestWithParam<Case> {};

TEST_P(SumOrderTest, PredictsEveryElementOfCToTheBit) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  const auto& [kernel, precision, layout, options] = GetParam();
  const CsrMatrix a = matrix(precision);
  Problem problem;
  problem.a = &a;
  problem.precision = precision;
  problem.n = kN;
  problem.options = options;
  problem.layout = layout;
  const std::unique_ptr<RowOrders> orders = make_row_orders(a, {"none", {}});
  problem.orders = orders.get();
  const Support support = check_support(*kernel, problem, device.info());
  if (!support.ok) GTEST_SKIP() << support.reason;
  const KernelInfo info = info_with(kernel->info(), options);
  StageTimer stages;
  const auto prepared = kernel->prepare(problem.operand(), problem.options, device, stages);
  const auto plan = prepared->bind(problem.shape(), stages);
  auto* const sums = dynamic_cast<OrderedSums*>(plan.get());
  if (sums == nullptr) GTEST_SKIP() << "states no order";

  DenseView b = make_b_view(kColumns, kN, layout, storage_type(precision));
  DenseView c = make_dense_view(kRows, kN, layout, ElementType::f32);
  const Buffer b_memory = device.allocate(b.bytes()), c_memory = device.allocate(c.bytes());
  b.data = b_memory.data();
  c.data = c_memory.data();
  device.fill_uniform(b, 4, precision);
  plan->launch(b, c, device.stream());
  device.synchronize();
  std::vector<unsigned char> host_b(b.bytes());
  std::vector<float> host_c(c.bytes() / sizeof(float));
  device.download(host_b.data(), b.data, b.bytes());
  device.download(host_c.data(), c.data, c.bytes());

  const auto place = [](const DenseView& view, std::int64_t i, std::int64_t j) {
    return view.layout == Layout::row_major ? i * view.ld + j : j * view.ld + i;
  };
  constexpr std::int64_t kSameOrder = 8;  // columns that one instruction has at the least
  std::vector<std::optional<SumOrder>> orders_of_c;
  for (std::int64_t i = 0; i < kRows; ++i)
    for (std::int64_t j = 0; j < kN; j += kSameOrder) orders_of_c.push_back(sums->sum_order(i, j));
  std::int64_t equal = 0, predicted = 0;
#pragma omp parallel for reduction(+ : equal, predicted) schedule(dynamic, 8)
  for (std::int64_t i = 0; i < kRows; ++i)
    for (std::int64_t j = 0; j < kN; ++j) {
      const std::optional<SumOrder>& order = orders_of_c[(i * kN + j) / kSameOrder];
      if (!order) continue;
      const float sum = predicted_sum(
          *order, info, precision, a,
          [&](std::int64_t k) { return load_element(b.type, host_b.data(), place(b, k, j)); },
          a.scale * b.scale);
      ++predicted;
      equal += same_bits(host_c[place(c, i, j)], sum) ? 1 : 0;
    }
  EXPECT_GT(predicted, 0);
  EXPECT_EQ(equal, predicted);
  std::cout << "  " << equal << " of " << predicted << " equal to the bit\n";
}

INSTANTIATE_TEST_SUITE_P(registry, SumOrderTest, testing::ValuesIn(cases()),
                         [](const auto& info) { return name_of(info.param); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SumOrderTest);

}  // namespace
}  // namespace spmmbench::test::sum_orders
