#pragma once
// The devices of the test process, opened once. A test that needs a GPU is skipped where there is
// none; once a fault has made the device unusable, the remaining tests fail at once.

#include <gtest/gtest.h>

#include "gpu/backend.hpp"

namespace spmmbench::test {

Device* find_device(DeviceKind kind);  // null where absent
std::string why_no_device();           // the reason there is no GPU
bool gpu_required();                   // SPMMBENCH_REQUIRE_GPU=1
void mark_device_lost(const DeviceError& error);
bool device_lost();

}  // namespace spmmbench::test

// `Device& name` in the current test, or a skip; with SPMMBENCH_REQUIRE_GPU=1 in the environment a
// failure, so that a machine whose GPU is not seen does not pass.
#define SPMMBENCH_TEST_DEVICE(name, kind)                                                   \
  if (::spmmbench::test::device_lost()) FAIL() << "the device was lost in an earlier test"; \
  if (::spmmbench::test::find_device(kind) == nullptr) {                                    \
    if (::spmmbench::test::gpu_required())                                                  \
      FAIL() << "SPMMBENCH_REQUIRE_GPU: " << ::spmmbench::test::why_no_device();            \
    GTEST_SKIP() << ::spmmbench::test::why_no_device();                                     \
  }                                                                                         \
  ::spmmbench::Device& name = *::spmmbench::test::find_device(kind)
