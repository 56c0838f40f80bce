// The versions of cuBLAS and cuSPARSE, which a run's document names.

#include <gtest/gtest.h>

#include "devices.hpp"
#include "gpu/vendor_libraries.hpp"

namespace spmmbench::test {
namespace {

TEST(VendorLibraries, AreNamedWhenTheyAreAskedFor) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  DeviceInfo info = device.info();
  EXPECT_EQ(info.cublas_version, "") << "to open a device loads no library";
  EXPECT_EQ(info.cusparse_version, "");
  name_libraries(info);
  EXPECT_EQ(info.cublas_version.empty(), !cublas_library().error().empty());
  EXPECT_EQ(info.cusparse_version.empty(), !cusparse_library().error().empty());
}

}  // namespace
}  // namespace spmmbench::test
