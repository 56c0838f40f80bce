// What may follow a launch of csr_row_split before it has ended: CTAs of cut rows let the next
// launch in at their end or when their products are summed, depending on how many there are.

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "caller.hpp"
#include "chains.hpp"
#include "devices.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::test {
namespace {

constexpr int kLaunches = 40;

// Of 1,024 rows of five segments. An H200 has 2.4 CTAs to a multiprocessor at N = 32, and in fp16
// 4.8, 9.7 and 19 at N = 100, 256 and 512.
void for_each_chain(Device& device, const std::function<void(Chain&)>& expect) {
  const CsrMatrix a = shift_by_one(1024, 160);
  const Kernel* const kernel = Registry<Kernel>::instance().find("csr_row_split");
  for (const Precision precision : {Precision::fp16, Precision::fp32}) {
    for (const std::int64_t n : {32, 64, 100, 256, 512}) {
      SCOPED_TRACE(std::string(to_string(precision)) + ", N = " + std::to_string(n));
      const Case of{kernel, precision, Layout::row_major, storage_type(precision)};
      const auto chain = Chain::make(of, a, n, device);
      ASSERT_NE(chain, nullptr);
      expect(*chain);
    }
  }
}

TEST(NextLaunch, OverwritesTheSameCOnlyWhenTheLaunchBeforeHasWrittenIt) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for_each_chain(device, [](Chain& chain) {
    chain.expect_last(kLaunches);
    chain.expect_last(kLaunches + 1);
  });
}

TEST(NextLaunch, FindsWhatAKernelOfTheCallerMadeOfC) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const bool overlaps : {false, true}) {
    SCOPED_TRACE(overlaps ? "a kernel that overlaps" : "a kernel that does not");
    for_each_chain(device, [&](Chain& chain) {
      chain.expect_shifted(kLaunches, [&](const DenseView& c, int launch) {
        scale(c, launch % 2 == 0 ? 2.0F : 0.5F, overlaps, device.stream());
      });
    });
  }
}

}  // namespace
}  // namespace spmmbench::test
