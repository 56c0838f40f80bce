// B and C of more than 2^31 elements: a 32-bit product of a row number and N anywhere in a kernel
// shows here. Needs a GPU with room for both.

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "devices.hpp"
#include "spmmbench/random.hpp"
#include "spmmbench/registry.hpp"
#include "verify/bound.hpp"
#include "verify/reference.hpp"

namespace spmmbench::test {
namespace {

constexpr std::int64_t kLargeRows = 17'000'000;
constexpr std::int64_t kColumns = 128;
static_assert(kLargeRows * kColumns > INT32_MAX);

// One nonzero per row, so that the host work stays small; all rows of B are used.
const CsrMatrix& permutation_matrix() {
  static const CsrMatrix matrix = [] {
    constexpr std::int64_t kStride = 7'919'137;  // shares no factor with kLargeRows
    CsrMatrix m{kLargeRows, kLargeRows, {0}, {}, {}};
    m.row_ptr.resize(kLargeRows + 1);
    m.col_idx.resize(kLargeRows);
    m.values.resize(kLargeRows);
    for (std::int64_t row = 0; row < kLargeRows; ++row) {
      m.row_ptr[row + 1] = row + 1;
      m.col_idx[row] = static_cast<std::int32_t>(row * kStride % kLargeRows);
      m.values[row] = uniform_at(1, row, 0);
    }
    return m;
  }();
  return matrix;
}

// With values of the precision, or ones. Made once.
const CsrMatrix& permutation_in(Precision precision, bool binary) {
  static std::map<std::pair<Precision, bool>, CsrMatrix> all;
  const auto [at, is_new] = all.try_emplace({precision, binary});
  if (is_new) {
    at->second = permutation_matrix();
    for (float& value : at->second.values) value = binary ? 1.0F : round_to(precision, value);
  }
  return at->second;
}

std::vector<std::string> kernel_names() {
  std::vector<std::string> names;
  for (const Kernel* kernel : Registry<Kernel>::instance().sorted())
    names.push_back(kernel->info().name);
  return names;
}

class LargeTest : public testing::TestWithParam<std::string> {};

TEST_P(LargeTest, OffsetsAre64Bit) {
  constexpr std::size_t kMaxPlanBytes = std::size_t{24} << 30;
  const Kernel& kernel = Registry<Kernel>::instance().at(GetParam());
  if (kernel.info().device == DeviceKind::host) GTEST_SKIP() << "minutes on a CPU";
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  const Precision precision = kernel.info().precisions.front();
  DenseView c = make_dense_view(kLargeRows, kColumns, kernel.info().layouts.front(),
                                kernel.info().c_types.front());
  Problem problem;
  problem.n = kColumns;
  problem.precision = precision;
  problem.c_type = c.type;
  problem.layout = c.layout;
  DenseView b = make_dense_view(kLargeRows, kColumns, c.layout, storage_type(precision));
  if (device.free_bytes() < b.bytes() + c.bytes() + kMaxPlanBytes)
    GTEST_SKIP() << "too little device memory";

  const CsrMatrix& a = permutation_in(precision, kernel.info().binary);
  problem.a = &a;
  const Support support = check_support(kernel, problem, device.info());
  if (!support.ok) GTEST_SKIP() << support.reason;
  if (support.device_bytes > kMaxPlanBytes) GTEST_SKIP() << "its format of A is too large";
  try {
    const Buffer b_memory = device.allocate(b.bytes());
    const Buffer c_memory = device.allocate(c.bytes());
    b.data = b_memory.data();
    c.data = c_memory.data();
    device.fill_uniform(b, 1, precision);
    device.fill_bytes(c.data, 0xFF, c.bytes());
    StageTimer stages;
    const auto orders = make_row_orders(a, {"none", {}});
    problem.orders = orders.get();
    const auto prepared = kernel.prepare(problem.operand(), {}, device, stages);
    const std::unique_ptr<Plan> plan = prepared->bind(problem.shape(), stages);
    plan->inspect_b(b, stages);
    plan->launch(b, c, device.stream());
    const Verdict verdict =
        make_reference(a, {}, b, device)->check(c, error_bound(kernel.info(), precision, c.type));
    EXPECT_TRUE(verdict.ok) << "error/bound " << verdict.error_over_bound << " at ("
                            << verdict.worst_row << ", " << verdict.worst_col << ")";
  } catch (const DeviceError& error) {
    mark_device_lost(error);
    FAIL() << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(registry, LargeTest, testing::ValuesIn(kernel_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace spmmbench::test
