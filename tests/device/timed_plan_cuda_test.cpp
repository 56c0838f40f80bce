// The exact test of plans that take new values in place: they pass it, multiply by their own values
// behind it, and hold no more memory than before.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "devices.hpp"
#include "gpu/csr_on_device.hpp"
#include "measure/exact_test.hpp"
#include "measure/operands.hpp"
#include "shapes.hpp"
#include "spmmbench/registry.hpp"
#include "verify/bound.hpp"
#include "verify/reference.hpp"

namespace spmmbench::test {
namespace {

class TimedPlanOnDevice : public testing::TestWithParam<std::string> {};

TEST_P(TimedPlanOnDevice, PassesTheExactTestAndHasItsOwnValuesBehindIt) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  const Kernel& kernel = *Registry<Kernel>::instance().find(GetParam());
  ASSERT_TRUE(kernel.info().takes_values);
  for (const Precision precision : {Precision::fp16, Precision::fp32, Precision::fp64})
    for (NamedShape shape : all_shapes())
      for (const std::int64_t n : {1, 24}) {
        SCOPED_TRACE(shape.name + " " + std::string(to_string(precision)) +
                     " N = " + std::to_string(n));
        CsrMatrix& a = shape.matrix;
        for (float& value : a.values) value = static_cast<float>(round_to(precision, value));
        if (precision == Precision::fp64) a.values64.assign(a.values.begin(), a.values.end());
        const CsrOnDevice copy(a, precision, device);
        Problem problem;
        problem.a = &a;
        problem.precision = precision;
        problem.on_device = &copy.view();
        const ElementType c_type =
            precision == Precision::fp64 ? ElementType::f64 : ElementType::f32;
        static_cast<Shape&>(problem) = {n, c_type, layout_for(kernel.info(), Layout::row_major, n)};
        const std::unique_ptr<RowOrders> orders = make_row_orders(problem.a, {"none", {}});
        problem.orders = orders.get();
        if (!check_support(kernel, problem, device.info()).ok) continue;
        const Operands operands =
            make_operands(a, n, precision, c_type, problem.layout, nullptr, 1, device);
        problem.ld_b = operands.b.ld;
        problem.ld_c = operands.c.ld;
        StageTimer stages;
        PreparedA prepared;
        prepared.kernel_a = kernel.prepare(problem.operand(), {}, device, stages);
        const auto plan = prepared.kernel_a->bind(problem.shape(), stages);
        ScaledLaunches launches(*plan, kernel.info(), device);
        const std::uint64_t a_before = checksum_of_a(problem, device);
        ExactOperands exact(
            a, {}, nullptr, 1,
            {.sum_bits = sum_bits(kernel.info(), precision), .precision = precision});
        const ExactTest test = test_timed_plan({problem, exact, operands.c, device}, kernel.info(),
                                               prepared, launches);
        EXPECT_TRUE(test.passed || !test.not_made.empty());
        EXPECT_EQ(checksum_of_a(problem, device), a_before);
        const auto reference = make_reference(a, {}, operands.b, device);
        poison(operands.c, kernel.info(), device);
        launches.launch(operands.b, operands.c, {}, device.stream());
        EXPECT_TRUE(reference->check(operands.c, error_bound(kernel.info(), precision, c_type)).ok);
        const auto later = prepared.kernel_a->bind(problem.shape(), stages);
        EXPECT_EQ(later->report().device_bytes, plan->report().device_bytes);
      }
}

class ExactPlanOnDevice : public testing::TestWithParam<std::string> {};

TEST_P(ExactPlanOnDevice, IsMadeOfAnAInDeviceMemoryWhereTheTimedOneIs) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  const Kernel& kernel = *Registry<Kernel>::instance().find(GetParam());
  for (const Precision precision : {Precision::fp16, Precision::fp32})
    for (NamedShape shape : all_shapes()) {
      constexpr std::int64_t kN = 24;
      SCOPED_TRACE(shape.name + " " + std::string(to_string(precision)));
      CsrMatrix& a = shape.matrix;
      for (float& value : a.values) value = static_cast<float>(round_to(precision, value));
      const CsrOnDevice copy(a, precision, device);
      Problem problem;
      problem.a = &a;
      problem.precision = precision;
      problem.on_device = &copy.view();
      static_cast<Shape&>(problem) = {kN, ElementType::f32,
                                      layout_for(kernel.info(), Layout::row_major, kN)};
      const std::unique_ptr<RowOrders> orders = make_row_orders(problem.a, {"none", {}});
      problem.orders = orders.get();
      if (!check_support(kernel, problem, device.info()).ok) continue;
      const Operands operands =
          make_operands(a, kN, precision, ElementType::f32, problem.layout, nullptr, 1, device);
      const std::uint64_t a_before = checksum_of_a(problem, device);
      ExactOperands exact(a, {}, nullptr, 1,
                          {.sum_bits = sum_bits(kernel.info(), precision), .precision = precision});
      std::unique_ptr<Prepared> prepared;
      const ExactOutcome outcome =
          run_exact_test(kernel, {problem, exact, operands.c, device}, prepared);
      const ExactTest& test = outcome.test;
      EXPECT_TRUE(test.passed || !test.not_made.empty()) << test.worst_row << ' ' << test.worst_col;
      EXPECT_EQ(checksum_of_a(problem, device), a_before);
      if (!test.not_made.empty()) continue;
      EXPECT_TRUE(outcome.from_same_memory);
      const DeviceCsr* const resident = exact.resident(problem, device);
      ASSERT_NE(resident, nullptr);
      EXPECT_EQ(resident->col_idx, copy.view().col_idx);
      if (a.nnz() > 0) {
        EXPECT_NE(resident->values, copy.view().values);
      }
    }
}

INSTANTIATE_TEST_SUITE_P(kernels, ExactPlanOnDevice,
                         testing::Values("async_bcsr", "auto", "cusparse_csr_alg2",
                                         "cusparse_csr_alg3", "gather_mma", "rsh"),
                         [](const auto& info) { return info.param; });

INSTANTIATE_TEST_SUITE_P(kernels, TimedPlanOnDevice,
                         testing::Values("async_wcsr", "csr_merge", "csr_row_split",
                                         "jagged_slices"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace spmmbench::test
