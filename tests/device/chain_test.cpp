// Products of products: C of one launch is B of the next, with nothing between them. Kernels start
// before their predecessor has ended, and must not read B before.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "devices.hpp"
#include "kernel_cases.hpp"
#include "spmmbench/random.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/reordering.hpp"

namespace spmmbench::test {
namespace {

constexpr std::int64_t kRows = 4096, kEntries = 16;

// Enough for a launch to overtake the one before. On the host a launch ends before the next begins.
int launches_on(const Device& device) { return device.info().kind == DeviceKind::host ? 2 : 20; }

// Row i takes row i + 1 of B, from between zeros that are stored: the product has the bits of B.
CsrMatrix shift_by_one() {
  CsrMatrix out;
  out.rows = out.cols = kRows;
  for (std::int64_t row = 0; row < kRows; ++row) {
    const std::int64_t taken = (row + 1) % kRows;
    std::vector<std::int32_t> columns;
    for (std::int64_t i = 0; i < kEntries; ++i)
      columns.push_back(static_cast<std::int32_t>((taken + i * kRows / kEntries) % kRows));
    std::sort(columns.begin(), columns.end());
    for (const std::int32_t column : columns) {
      out.col_idx.push_back(column);
      out.values.push_back(column == taken ? 1.0F : 0.0F);
    }
    out.row_ptr.push_back(static_cast<std::int64_t>(out.col_idx.size()));
  }
  out.values64.assign(out.values.begin(), out.values.end());
  return out;
}

class ChainTest : public testing::TestWithParam<Case> {
 protected:
  // False when the kernel refuses the problem.
  bool chain(Device& device, const CsrMatrix& a, std::int64_t n) {
    const Case& param = GetParam();
    const auto orders = make_row_orders(a, {"none", {}});
    const SparseOperand operand{&a, {}, param.precision, orders.get()};
    const Shape shape{n, param.c_type, param.layout};
    if (!check_support(*param.kernel, {operand, shape, param.options}, device.info()).ok)
      return false;
    DenseView from = make_b_view(kRows, n, param.layout, param.c_type), to = from;
    const Buffer first = device.allocate(from.bytes()), second = device.allocate(from.bytes());
    from.data = first.data();
    to.data = second.data();
    device.fill_bytes(to.data, 0xFF, to.bytes());  // NaN
    device.fill_uniform(from, stream_seed(1, kStreamB), param.precision);
    const std::vector<char> before = download(device, from);
    StageTimer stages;
    const auto prepared = param.kernel->prepare(operand, param.options, device, stages);
    const std::unique_ptr<Plan> plan = prepared->bind(shape, stages);
    plan->inspect_b(from, stages);
    device.synchronize();
    const int launches = launches_on(device);
    for (int launch = 0; launch < launches; ++launch) {
      plan->launch(from, to, device.stream());
      std::swap(from, to);
    }
    device.synchronize();
    expect_shifted(before, download(device, from), from, launches);
    return true;
  }

 private:
  static std::vector<char> download(Device& device, const DenseView& view) {
    std::vector<char> host(view.bytes());
    device.download(host.data(), view.data, host.size());
    return host;
  }

  static void expect_shifted(const std::vector<char>& before, const std::vector<char>& after,
                             const DenseView& view, int launches) {
    const std::size_t bytes = bytes_of(view.type);
    const auto at = [&](const std::vector<char>& host, std::int64_t row, std::int64_t column) {
      const std::int64_t place =
          view.layout == Layout::row_major ? row * view.ld + column : column * view.ld + row;
      return host.data() + static_cast<std::size_t>(place) * bytes;
    };
    std::int64_t wrong = 0;
    for (std::int64_t row = 0; row < kRows; ++row)
      for (std::int64_t column = 0; column < view.cols; ++column)
        wrong += std::memcmp(at(after, row, column), at(before, (row + launches) % kRows, column),
                             bytes) != 0;
    EXPECT_EQ(wrong, 0) << "of " << kRows * view.cols << " elements";
  }
};

TEST_P(ChainTest, ReadsBOnlyWhenTheLaunchBeforeHasWrittenIt) {
  const Case& param = GetParam();
  SPMMBENCH_TEST_DEVICE(device, param.kernel->info().device);
  const CsrMatrix a = shift_by_one();
  int ran = 0;
  for (const std::int64_t n : {1, 8, 16, 32, 64, 100, 256}) {
    SCOPED_TRACE("N = " + std::to_string(n));
    try {
      ran += chain(device, a, n);
    } catch (const DeviceError& error) {
      mark_device_lost(error);
      ADD_FAILURE() << error.what();
    }
    if (HasFailure()) return;
  }
  if (ran == 0) GTEST_SKIP() << "refuses this matrix";
}

// Those whose C can be B. Kernels that see a pattern would add up B.
std::vector<Case> chain_cases() {
  std::vector<Case> cases = all_cases();
  std::erase_if(cases, [](const Case& c) {
    return c.c_type != storage_type(c.precision) || c.kernel->info().binary;
  });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(registry, ChainTest, testing::ValuesIn(chain_cases()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace spmmbench::test
