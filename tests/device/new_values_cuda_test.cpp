// A caller's values, brought into A and into a kernel's own form of it in one pass.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "../../kernels/window/device_values.hpp"
#include "devices.hpp"
#include "downloaded.hpp"
#include "gpu/csr_on_device.hpp"
#include "shapes.hpp"
#include "spmmbench/random.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/replacing.hpp"

namespace spmmbench::test {
namespace {

// Eighths in all precisions but fp64, which keeps what the others round off. Sums of their products
// with integers have no rounding, so that the order of additions leaves no trace.
std::vector<float> some_values(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto eighths = static_cast<float>(std::round(8 * uniform_at(seed, 0, i)));
    values[i] = eighths / 8 * (1 + 0x1p-14F);
  }
  return values;
}

// B of integers from -2 to 2.
Buffer integers(const DenseView& b, Device& device) {
  std::vector<float> values(b.bytes() / bytes_of(b.type));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(std::round(2 * uniform_at(2, 1, static_cast<std::int64_t>(i))));
  if (b.type == ElementType::f64)
    return device.upload(std::vector<double>(values.begin(), values.end()));
  return upload_values(device, values, b.type);
}

CsrMatrix with_values(CsrMatrix a, const std::vector<float>& values, Precision precision) {
  for (std::size_t i = 0; i < values.size(); ++i) a.values[i] = round_to(precision, values[i]);
  if (precision == Precision::fp64) a.values64.assign(a.values.begin(), a.values.end());
  return a;
}

using Bytes = std::vector<unsigned char>;

// A as a kernel prepared it for some N.
class ReplaceableA {
 public:
  ReplaceableA(const std::string& spec, const CsrMatrix& a, Precision precision,
               const std::vector<std::int64_t>& widths, Device& device)
      : device_(device), a_(a, precision, device), view_(a_.view()) {
    const Spec parsed = Spec::parse(spec);
    kernel_ = parsed.name;
    const Kernel& kernel = Registry<Kernel>::instance().at(kernel_);
    host_ = a;
    operand_.a = &host_;
    operand_.on_device = &view_;
    operand_.precision = precision;
    orders_ = make_row_orders(operand_.a, {"none", {}});
    operand_.orders = orders_.get();
    options_ = parsed.options;
    const ElementType c_type = precision == Precision::fp64 ? ElementType::f64 : ElementType::f32;
    for (const std::int64_t n : widths) {
      const Shape shape{n, c_type, layout_for(kernel.info(), Layout::row_major, n)};
      if (!check_support(kernel, Problem{operand_, shape, options_}, device.info()).ok) return;
    }
    prepared_ = kernel.prepare(operand_, options_, device, stages_);
    for (const std::int64_t n : widths) bind(n);
  }

  void bind(std::int64_t n) {
    const KernelInfo& info = Registry<Kernel>::instance().at(kernel_).info();
    const ElementType c_type =
        operand_.precision == Precision::fp64 ? ElementType::f64 : ElementType::f32;
    const Layout layout = layout_for(info, Layout::row_major, n);
    plans_.push_back({prepared_->bind({n, c_type, layout}, stages_),
                      make_b_view(host_.cols, n, layout, view_.value_type),
                      make_dense_view(host_.rows, n, layout, c_type)});
  }

  bool is_there() const { return prepared_ != nullptr; }

  void take(const void* values, ElementType type) {
    auto* const reader = dynamic_cast<ReadsNewValues*>(prepared_.get());
    ASSERT_NE(reader, nullptr);
    reader->read_values({values, view_.nnz, type, operand_.precision, a_.values()},
                        device_.stream());
  }

  // With what `take` has brought.
  Bytes operand() {
    if (auto* const reader = dynamic_cast<ReadsNewValues*>(prepared_.get()))
      reader->bring_operand_up_to_date(device_.stream());
    device_.synchronize();
    return downloaded<unsigned char>(device_, view_.values, view_.nnz * bytes_of(view_.value_type));
  }

  // Enqueues a product by plan `i`. C is in the memory that is returned.
  Buffer product(std::size_t i) {
    OfWidth& plan = plans_[i];
    if (plan.b_memory.data() == nullptr) {
      plan.b_memory = integers(plan.b, device_);
      plan.b.data = plan.b_memory.data();
    }
    Buffer c = device_.allocate(plan.c.bytes());
    device_.fill_bytes(c.data(), 0, c.bytes());  // what lies between rows, too
    plan.c.data = c.data();
    plan.plan->launch(plan.b, plan.c, device_.stream());
    return c;
  }

 private:
  struct OfWidth {
    std::unique_ptr<Plan> plan;
    DenseView b, c;
    Buffer b_memory = {};
  };

  Device& device_;
  std::string kernel_;
  CsrMatrix host_;
  CsrOnDevice a_;
  DeviceCsr view_;
  SparseOperand operand_;
  Options options_;
  std::unique_ptr<RowOrders> orders_;
  StageTimer stages_;
  std::unique_ptr<Prepared> prepared_;
  std::vector<OfWidth> plans_;
};

Bytes bytes_of_buffer(Device& device, const Buffer& buffer) {
  return downloaded<unsigned char>(device, buffer.data(), buffer.bytes());
}

void expect_fresh(const std::string& spec, const CsrMatrix& a, Precision precision,
                  ElementType type, Device& device) {
  const std::vector<std::int64_t> widths = {1, 8, 32};
  const std::vector<float> values = some_values(a.nnz(), 8);
  const CsrMatrix rounded = with_values(a, values, precision);
  ReplaceableA fresh(spec, rounded, precision, widths, device);
  if (!fresh.is_there()) return;
  ReplaceableA replaced(spec, with_values(a, some_values(a.nnz(), 9), precision), precision, widths,
                        device);
  const Buffer given =
      type == ElementType::f32 ? device.upload(values) : upload_values(device, rounded, type);
  replaced.take(given.data(), type);
  EXPECT_EQ(replaced.operand(), fresh.operand());
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const Buffer expected = fresh.product(i), got = replaced.product(i);
    device.synchronize();
    EXPECT_EQ(bytes_of_buffer(device, got), bytes_of_buffer(device, expected)) << widths[i];
  }
}

TEST(NewValues, LeaveTheOperandAndTheProductsOfAFreshlyPreparedA) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  struct Case {
    Precision precision;
    ElementType given;
  };
  for (const NamedShape& shape : all_shapes())
    for (const auto& [precision, given] : {Case{Precision::fp16, ElementType::f32},
                                           {Precision::fp16, ElementType::f16},
                                           {Precision::bf16, ElementType::f32},
                                           {Precision::tf32, ElementType::f32},
                                           {Precision::fp64, ElementType::f32},
                                           {Precision::fp64, ElementType::f64}})
      for (const char* spec :
           {"jagged_slices", "jagged_slices?steps=1&order=degree", "async_wcsr?order=degree",
            "async_wcsr?order=natural&window=32", "async_wcsr?build=host"}) {
        if (precision == Precision::fp64 && *spec == 'a') continue;
        SCOPED_TRACE(shape.name + " " + spec + " " + std::string(to_string(precision)) + " from " +
                     std::string(to_string(given)));
        expect_fresh(spec, shape.matrix, precision, given, device);
      }
}

TEST(NewValues, ReachThePlansThatAreBoundBehindThem) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const NamedShape& shape : all_shapes())
    for (const char* spec : {"jagged_slices", "async_wcsr?order=natural"})
      for (const std::int64_t first : {1, 8}) {
        SCOPED_TRACE(shape.name + " " + spec + " " + std::to_string(first));
        const CsrMatrix& a = shape.matrix;
        const std::vector<float> values = some_values(a.nnz(), 8);
        const Precision precision = Precision::fp16;
        ReplaceableA fresh(spec, with_values(a, values, precision), precision, {32}, device);
        if (!fresh.is_there()) continue;
        ReplaceableA replaced(spec, with_values(a, some_values(a.nnz(), 9), precision), precision,
                              {first}, device);
        const Buffer given = device.upload(values);
        replaced.take(given.data(), ElementType::f32);
        replaced.bind(32);
        const Buffer expected = fresh.product(0), got = replaced.product(1);
        device.synchronize();
        EXPECT_EQ(bytes_of_buffer(device, got), bytes_of_buffer(device, expected));
      }
}

TEST(NewValues, AreSeenByTheLaunchBehindThem) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  constexpr int kTimes = 50;
  for (const NamedShape& shape : all_shapes())
    for (const char* spec : {"jagged_slices", "async_wcsr?order=natural"}) {
      const CsrMatrix& a = shape.matrix;
      if (a.nnz() == 0 || a.rows > 100'000) continue;
      SCOPED_TRACE(shape.name + " " + spec);
      std::vector<Buffer> given;
      std::vector<Bytes> expected;
      ReplaceableA prepared(spec, with_values(a, some_values(a.nnz(), 1), Precision::fp16),
                            Precision::fp16, {1, 16}, device);
      if (!prepared.is_there()) continue;
      const auto plan_of = [](int time) { return static_cast<std::size_t>(time / 2 % 2); };
      for (int time = 0; time < 4; ++time) {
        given.push_back(device.upload(some_values(a.nnz(), 20 + time % 2)));
        prepared.take(given.back().data(), ElementType::f32);
        const Buffer c = prepared.product(plan_of(time));
        device.synchronize();
        expected.push_back(bytes_of_buffer(device, c));
      }
      std::vector<Buffer> products;
      for (int time = 0; time < kTimes; ++time) {
        prepared.take(given[time % 4].data(), ElementType::f32);
        products.push_back(prepared.product(plan_of(time)));
      }
      device.synchronize();
      for (int time = 0; time < kTimes; ++time)
        EXPECT_EQ(bytes_of_buffer(device, products[time]), expected[time % 4]) << time;
    }
}

void expect_replaced(const CsrMatrix& a, const WcsrShape& shape, const Permutation& rows,
                     Device& device) {
  constexpr Precision kPrecision = Precision::fp16;
  const std::vector<float> values = some_values(a.nnz(), 3);
  const CsrOnDevice csr(a, kPrecision, device);
  StageTimer stages;
  const Buffer row_of = device.upload(rows);
  const DeviceWcsr built =
      build_wcsr(csr.view(), shape, row_of.as<std::int32_t>(), a.rows, device, stages);
  device.synchronize();
  const WcsrLines lines = find_wcsr_lines(csr.view(), built, row_of.as<std::int32_t>(), device);
  const Buffer given = device.upload(values);
  replace_wcsr_values({given.data(), a.nnz(), ElementType::f32, kPrecision, csr.values()}, lines,
                      built, device.stream());
  device.synchronize();
  const Wcsr host = Wcsr::build(with_values(a, values, kPrecision), shape, rows);
  EXPECT_EQ(downloaded<std::uint16_t>(device, built.values, host.values16.size()), host.values16);
}

TEST(NewValues, LieInTheLinesOfTheWindowsThatTheHostBuilds) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const NamedShape& shape : all_shapes()) {
    CsrMatrix a = shape.matrix;
    if (a.nnz() == 0) continue;
    std::fill(a.values.begin(), a.values.end(), 1.0F);
    Permutation reversed(a.rows);
    std::iota(reversed.rbegin(), reversed.rend(), 0);
    for (const int window_rows : {8, 16, 32})
      for (const Permutation& rows : {Permutation{}, reversed}) {
        SCOPED_TRACE(shape.name + " " + std::to_string(window_rows));
        expect_replaced(a, {window_rows, 16, ElementType::f16}, rows, device);
      }
  }
}

}  // namespace
}  // namespace spmmbench::test
