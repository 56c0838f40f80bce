// Kernels that depend on what B holds, on operands that both have zeros (gen:esmm).

#include <gtest/gtest.h>

#include <algorithm>

#include "devices.hpp"
#include "gpu/upload_values.hpp"
#include "spmmbench/generator.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/reordering.hpp"
#include "verify/bound.hpp"
#include "verify/reference.hpp"

namespace spmmbench::test {
namespace {

struct DenseOperands {
  CsrMatrix a;
  DenseMatrix b;
};

DenseOperands make(const char* pattern_a, const char* pattern_b) {
  Options options;
  options.set("m", "300");
  options.set("k", "1100");
  options.set("n", "600");
  options.set("pattern_a", pattern_a);
  options.set("pattern_b", pattern_b);
  Generated made = Registry<Generator>::instance().at("esmm").generate(options);
  return {std::move(made.csr), std::move(made.b)};
}

Buffer upload(const DenseMatrix& b, DenseView& view, Precision precision, Device& device) {
  std::vector<float> padded(view.rows * view.ld, 0.0F);
  for (std::int64_t row = 0; row < b.rows; ++row)
    for (std::int64_t column = 0; column < b.cols; ++column)
      padded[row * view.ld + column] = round_to(precision, b.values[row * b.cols + column]);
  Buffer memory = upload_values(device, padded, view.type);
  view.data = memory.data();
  return memory;
}

void expect_right(const Kernel& kernel, Precision precision, const char* extract,
                  const DenseOperands& operands, Device& device) {
  CsrMatrix a = operands.a;
  for (float& value : a.values) value = round_to(precision, value);
  const auto orders = make_row_orders(a, {"none", {}});
  const SparseOperand operand{&a, {}, precision, orders.get()};
  const Shape shape{operands.b.cols, ElementType::f32, Layout::row_major};
  Options options;
  if (extract != nullptr) options.set("extract", extract);
  if (!check_support(kernel, Problem{operand, shape, options}, device.info()).ok) return;
  DenseView b = make_b_view(a.cols, shape.n, shape.layout, storage_type(precision));
  const Buffer b_memory = upload(operands.b, b, precision, device);
  DenseView c = make_dense_view(a.rows, shape.n, shape.layout, shape.c_type);
  const Buffer c_memory = device.allocate(c.bytes());
  c.data = c_memory.data();
  device.fill_bytes(c.data, 0xFF, c.bytes());
  StageTimer stages;
  const auto prepared = kernel.prepare(operand, options, device, stages);
  const std::unique_ptr<Plan> plan = prepared->bind(shape, stages);
  plan->inspect_b(b, stages);
  plan->launch(b, c, device.stream());
  device.synchronize();
  const Verdict verdict =
      make_reference(a, {}, b, device)->check(c, error_bound(kernel.info(), precision, c.type));
  EXPECT_TRUE(verdict.ok) << "error/bound " << verdict.error_over_bound << " at ("
                          << verdict.worst_row << ", " << verdict.worst_col << ")";
}

TEST(JointZeros, AreLeftOutWithoutChangingTheProduct) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  const char* const patterns[][2] = {{"11111111", "11111111"}, {"11110000", "11110000"},
                                     {"10000000", "10000000"}, {"11111111", "10000000"},
                                     {"11000000", "11111111"}, {"00000000", "11110000"},
                                     {"11110000", "00000000"}};
  for (const auto& [a, b] : patterns) {
    const DenseOperands operands = make(a, b);
    for (const Kernel* kernel : Registry<Kernel>::instance().sorted()) {
      const KernelInfo& info = kernel->info();
      if (!info.inspects_b) continue;
      const bool extracts = std::ranges::any_of(
          info.options, [](const OptionSpec& option) { return option.name == "extract"; });
      for (const Precision precision : info.precisions) {
        SCOPED_TRACE(info.name + " " + std::string(to_string(precision)) + ", " + a + " x " + b);
        expect_right(*kernel, precision, nullptr, operands, device);
        if (extracts) expect_right(*kernel, precision, "ab", operands, device);
      }
    }
  }
}

}  // namespace
}  // namespace spmmbench::test
