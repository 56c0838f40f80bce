// What a transport over NCCL does on one GPU, as the only rank.

#include "gpu/nccl.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "devices.hpp"
#include "spin.hpp"

namespace spmmbench::test {
namespace {

std::unique_ptr<Transport> only_rank(Device& device) {
  return why_no_nccl().empty() ? open_nccl(new_nccl_id(), 0, 1, device) : nullptr;
}

TEST(Nccl, ATransferBesideAProductRunsFirstInARecordingToo) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  const auto transport = only_rank(device);
  if (!transport) GTEST_SKIP() << why_no_nccl();
  const Buffer times = device.allocate(3 * sizeof(std::uint64_t));
  auto* const at = times.as<std::uint64_t>();
  constexpr int kChain = 4;  // launches, of which the last come when the other kernel fills the GPU
  const auto launch = [&] {
    write_time(at, device.stream());
    transport->fork();
    fill_gpu(device.stream());
    for (int i = 0; i < kChain; ++i) write_time(at + 1, transport->stream());
    transport->join();
    write_time(at + 2, device.stream());
  };
  device.record(launch, 1)();
  std::vector<std::uint64_t> ns(3);
  device.download(ns.data(), at, times.bytes());
  // Behind the last CTAs of the kernel, but for the priority of its stream.
  EXPECT_LT(ns[1] - ns[0], (ns[2] - ns[0]) / 2);
}

}  // namespace
}  // namespace spmmbench::test
