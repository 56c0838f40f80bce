#include "core/shared_library.hpp"

#include <gtest/gtest.h>

#include <cmath>  // lround

#include "spmmbench/device.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

TEST(SharedLibrary, AFunctionIsFoundByItsDeclaration) {
  static const SharedLibrary math("libm.so.6");
  EXPECT_EQ(math.error(), "");
  EXPECT_EQ(SPMMBENCH_FUNCTION(math, lround)(2.6), 3);
}

TEST(SharedLibrary, AMissingLibraryIsNamedAndItsFunctionsFailWhenCalled) {
  const SharedLibrary none("libnone_of_this_name.so.1");
  EXPECT_NE(none.error().find("libnone_of_this_name.so.1"), std::string::npos);
  EXPECT_EQ(none.find("lround"), nullptr);
  EXPECT_THROW((void)none.require("lround"), Unsupported);
}

TEST(SharedLibrary, AMissingFunctionIsNamed) {
  const SharedLibrary math("libm.so.6");
  EXPECT_EQ(math.find("none_of_this_name"), nullptr);
  try {
    (void)math.require("none_of_this_name");
    FAIL() << "found";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("none_of_this_name"), std::string::npos);
  }
}

}  // namespace
}  // namespace spmmbench
