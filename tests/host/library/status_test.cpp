// The status that the C interface gives for each kind of exception.

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "library/status.hpp"

namespace spmmbench {
namespace {

TEST(LibraryStatus, SaysWhatKindOfErrorItWas) {
  EXPECT_EQ(status_of(Unsupported("no such N")), SPMMBENCH_UNSUPPORTED);
  EXPECT_EQ(status_of(Error("A is NULL")), SPMMBENCH_INVALID);
  EXPECT_EQ(status_of(OutOfMemory("wanted more")), SPMMBENCH_OUT_OF_MEMORY);
  EXPECT_EQ(status_of(DeviceError("illegal address", true)), SPMMBENCH_DEVICE_LOST);
  EXPECT_EQ(status_of(DeviceError("too large a grid", false)), SPMMBENCH_FAILED);
  EXPECT_EQ(status_of(std::bad_alloc()), SPMMBENCH_OUT_OF_MEMORY);
  EXPECT_EQ(status_of(std::length_error("vector")), SPMMBENCH_OUT_OF_MEMORY);
  EXPECT_EQ(status_of(std::runtime_error("anything else")), SPMMBENCH_FAILED);
}

}  // namespace
}  // namespace spmmbench
