// Tall matrices most of whose rows are empty: kernels leave these rows out and clear them in C.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "devices.hpp"
#include "shapes.hpp"
#include "spmmbench/random.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/spec.hpp"
#include "verify/bound.hpp"
#include "verify/reference.hpp"

namespace spmmbench::test {
namespace {

constexpr std::int64_t kTallRows = 140'003, kTallColumns = 3001;

// A row for which `length` is not 0 has that many entries.
template <class Length>
CsrMatrix tall(Length length) {
  CsrMatrix m{kTallRows, kTallColumns, {0}, {}, {}};
  for (std::int64_t row = 0; row < kTallRows; ++row) {
    for (std::int64_t i = 0; i < length(row); ++i) {
      m.col_idx.push_back(static_cast<std::int32_t>(i));
      m.values.push_back(uniform_at(4, row, i));
    }
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  return m;
}

std::vector<NamedShape> tall_shapes() {
  std::vector<NamedShape> shapes;
  shapes.push_back({"scattered", tall([](auto r) { return r % 13 == 5 ? 1 + r % 37 : 0; })});
  shapes.push_back({"four_in_five", tall([](auto r) { return r % 5 == 3 ? 1 + r % 3 : 0; })});
  shapes.push_back({"bursts", tall([](auto r) { return r % 4096 < 50 ? r % 7 : 0; })});
  shapes.push_back(
      {"long_rows", tall([](auto r) { return r % 9001 == 77 ? r % kTallColumns : 0; })});
  shapes.push_back({"last_row", tall([](auto r) { return r == kTallRows - 1 ? 3 : 0; })});
  shapes.push_back({"no_nonzeros", tall([](auto) { return 0; })});
  leave_out_large(shapes);
  return shapes;
}

// C holds NaN before the launch, so that a row that nobody writes shows.
void expect_product(Device& device, const Spec& spec, const CsrMatrix& a,
                    std::span<const std::int32_t> row_ids, Precision precision, std::int64_t n) {
  const Kernel& kernel = *Registry<Kernel>::instance().find(spec.name);
  const auto orders = make_row_orders(a, {"none", {}});
  const SparseOperand operand{&a, row_ids, precision, orders.get()};
  const Shape shape{n, type_of_c(precision, ElementType::f32)};
  if (!check_support(kernel, Problem{operand, shape, spec.options}, device.info()).ok) return;
  DenseView b = make_b_view(a.cols, n, shape.layout, storage_type(precision));
  const Buffer b_memory = device.allocate(b.bytes());
  b.data = b_memory.data();
  device.fill_uniform(b, 1, precision);
  DenseView c = make_dense_view(a.rows, n, shape.layout, shape.c_type);
  const Buffer c_memory = device.allocate(c.bytes());
  c.data = c_memory.data();
  StageTimer stages;
  const auto prepared = kernel.prepare(operand, spec.options, device, stages);
  const std::unique_ptr<Plan> plan = prepared->bind(shape, stages);
  device.fill_bytes(c.data, 0xFF, c.bytes());
  plan->launch(b, c, device.stream());
  device.synchronize();
  const KernelInfo info = info_with(kernel.info(), spec.options);
  EXPECT_TRUE(make_reference(a, row_ids, b, device)
                  ->check(c, error_bound(info, precision, shape.c_type))
                  .ok);
}

class TallTest : public testing::TestWithParam<const char*> {};

TEST_P(TallTest, EmptyRowsOfCAreZeroAndOthersAreProducts) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  const Spec spec = Spec::parse(GetParam());
  std::vector<std::int32_t> moved(kTallRows);  // row i of A is row moved[i] of C
  for (std::int64_t i = 0; i < kTallRows; ++i)
    moved[i] = static_cast<std::int32_t>((i * 7919 + 13) % kTallRows);
  for (const Precision precision : {Precision::fp16, Precision::fp32, Precision::fp64}) {
    const auto& precisions = Registry<Kernel>::instance().find(spec.name)->info().precisions;
    if (std::ranges::find(precisions, precision) == precisions.end()) continue;
    for (auto& [name, a] : tall_shapes()) {
      for (float& value : a.values) value = round_to(precision, value);
      if (precision == Precision::fp64) a.values64.assign(a.values.begin(), a.values.end());
      for (const std::int64_t n : {1, 3, 8, 20, 40}) {
        SCOPED_TRACE(name + ", N = " + std::to_string(n) + ", " +
                     std::string(to_string(precision)));
        expect_product(device, spec, a, {}, precision, n);
        expect_product(device, spec, a, moved, precision, n);
        if (HasFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(kernels, TallTest,
                         testing::Values("jagged_slices", "jagged_slices?order=degree",
                                         "csr_row_split", "csr_row_split?split=8",
                                         "async_wcsr?window=8", "async_wcsr?window=8&build=host"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name)
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           return name;
                         });

}  // namespace
}  // namespace spmmbench::test
