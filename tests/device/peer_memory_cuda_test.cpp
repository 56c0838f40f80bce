// Memory that processes share, here two parts of one process on one GPU.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "devices.hpp"
#include "gpu/copy_lines.hpp"
#include "gpu/peer_memory.hpp"
#include "io/output.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench::test {
namespace {

TEST(PeerMemory, PartsAreOneRangeOfAddressesOfWhichEachHasItsOwn) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  const auto first = open_cuda_peer_memory(device), second = open_cuda_peer_memory(device);
  const std::size_t page = first->page_bytes();
  std::optional<Descriptor> own, other;
  try {
    own.emplace(first->make(page));
    other.emplace(second->make(2 * page));
  } catch (const Unsupported& refusal) {
    GTEST_SKIP() << refusal.what();
  }
  const std::array<PeerPart, 2> parts = {PeerPart{own->get(), page},
                                         PeerPart{other->get(), 2 * page}};
  auto* const written = static_cast<char*>(first->map(parts));
  auto* const read = static_cast<char*>(second->map(parts));
  ASSERT_NE(written, read);
  device.fill_bytes(written, 1, page);
  device.fill_bytes(written + page, 2, 2 * page);
  std::vector<char> host(3 * page);
  device.download(host.data(), read, host.size());
  for (std::size_t at = 0; at < host.size(); ++at) ASSERT_EQ(host[at], at < page ? 1 : 2) << at;
}

TEST(PeerMemory, AMeetingOfOneCountsItsTimes) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  const Buffer places = device.upload(std::vector<std::uint32_t>{0});
  for (std::uint32_t times = 1; times <= 3; ++times) {
    cuda_meet(places.data(), places.bytes(), 0, 1, device.stream());
    std::uint32_t seen = 0;
    device.download(&seen, places.data(), sizeof seen);
    EXPECT_EQ(seen, times);
  }
}

TEST(CopyLines, EachIsTheLineThatItIsACopyOf) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  constexpr std::int64_t kLines = 70000;
  constexpr std::size_t kWord = 16;  // bytes
  for (const std::size_t words : {1, 3, 16, 33, 64})
    for (const CopyBeside beside : {CopyBeside::nothing, CopyBeside::a_product})
      for (const std::int64_t count : {std::int64_t{1}, std::int64_t{1000}, kLines}) {
        const std::size_t numbers = words * kWord / sizeof(std::int32_t);
        std::vector<std::int32_t> from(kLines * numbers), lines(count), to(count * numbers);
        for (std::size_t at = 0; at < from.size(); ++at) from[at] = static_cast<std::int32_t>(at);
        for (std::int64_t i = 0; i < count; ++i)
          lines[i] = static_cast<std::int32_t>(i * 7919 % kLines);
        const Buffer source = device.upload(from), which = device.upload(lines),
                     copy = device.allocate(to.size() * sizeof(std::int32_t));
        cuda_copy_lines(source.data(), which.as<std::int32_t>(), count, words * kWord, copy.data(),
                        beside, device.stream());
        device.download(to.data(), copy.data(), copy.bytes());
        for (std::size_t at = 0; at < to.size(); ++at)
          ASSERT_EQ(to[at], from[lines[at / numbers] * numbers + at % numbers]) << words << count;
      }
}

}  // namespace
}  // namespace spmmbench::test
