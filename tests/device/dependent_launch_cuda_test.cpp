// Kernels may only start before their predecessor has ended where their code waits for it.

#include "../../kernels/common/dependent_launch.hpp"

#include <gtest/gtest.h>

#include "devices.hpp"

namespace spmmbench::test {
namespace {

TEST(DependentLaunch, KernelsWaitWhereTheirCodeIsThatOfTheDevice) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  // The build has code of 9.0, and code of 8.0 for every other device.
  constexpr int kCompiledFor = 90;
  EXPECT_EQ(kernels_wait(), device.info().compute_capability == kCompiledFor);
}

}  // namespace
}  // namespace spmmbench::test
