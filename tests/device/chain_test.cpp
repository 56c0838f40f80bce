// Products of products: C of one launch is B of the next, with nothing between them.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "chains.hpp"
#include "devices.hpp"

namespace spmmbench::test {
namespace {

// Enough for a launch to overtake the one before. On the host a launch ends before the next begins.
int launches_on(const Device& device) { return device.info().kind == DeviceKind::host ? 2 : 20; }

class ChainTest : public testing::TestWithParam<Case> {
 protected:
  static void expect_shifted(const CsrMatrix& a, const std::vector<std::int64_t>& widths) {
    const Case& param = GetParam();
    SPMMBENCH_TEST_DEVICE(device, param.kernel->info().device);
    int ran = 0;
    for (const std::int64_t n : widths) {
      SCOPED_TRACE("N = " + std::to_string(n));
      try {
        const auto chain = Chain::make(param, a, n, device);
        if (chain == nullptr) continue;
        chain->expect_shifted(launches_on(device));
        ++ran;
      } catch (const DeviceError& error) {
        mark_device_lost(error);
        ADD_FAILURE() << error.what();
      }
      if (HasFailure()) return;
    }
    if (ran == 0) GTEST_SKIP() << "refuses this matrix";
  }
};

TEST_P(ChainTest, ReadsBOnlyWhenTheLaunchBeforeHasWrittenIt) {
  expect_shifted(shift_by_one(4096, 16), {1, 8, 16, 32, 64, 100, 256});
}

// So long that csr_row_split cuts them, and so few that its CTAs are all on the device at once.
TEST_P(ChainTest, ReadsBOfLongRowsOnlyWhenTheLaunchBeforeHasWrittenIt) {
  expect_shifted(shift_by_one(1024, 160), {64, 256});
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
