// Work cut on the device against that of the host.

#include <gtest/gtest.h>

#include "../../kernels/window/device_cut.hpp"
#include "devices.hpp"
#include "downloaded.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench {

bool operator==(const TileSpan& a, const TileSpan& b) {
  return a.first_tile == b.first_tile && a.tiles == b.tiles && a.first_window == b.first_window &&
         a.split == b.split;
}

namespace test {
namespace {

// Windows of 1 to `most` tiles, and one in `rarity` of up to 1000 more.
std::vector<std::int32_t> window_pointers(std::int64_t windows, int most, int rarity) {
  std::vector<std::int32_t> out{0};
  for (std::int64_t w = 0; w < windows; ++w) {
    const auto draw = static_cast<std::int32_t>(hash_position(6, w, most) % (1U << 30));
    const std::int32_t more = draw % rarity == 0 ? draw / rarity % 1000 : 0;
    out.push_back(out.back() + 1 + draw % most + more);
  }
  return out;
}

TEST(WindowDeviceCut, GivesTheWorkOfTheHost) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const std::int64_t windows : {0, 1, 31, 1023, 1024, 1025, 5000, 300'000})
    for (const int most : {1, 3, 40})
      for (const int rarity : {7, 1'000'000'000})
        for (const TileCut& cut : {TileCut{}, TileCut{1, 1, 1, 1, 1}, TileCut{4, 8, 12, 32, 16},
                                   TileCut{2, 32, 32, 8, 8}}) {
          const auto pointers = window_pointers(windows, most, rarity);
          const TileWork host = cut_windows(pointers, cut);
          const Buffer on_device = device.upload(pointers);
          SCOPED_TRACE(std::to_string(windows) + " windows of up to " + std::to_string(most) +
                       ", one in " + std::to_string(rarity) + " longer, team " +
                       std::to_string(cut.team));
          const window::DeviceWork got = window::cut_windows(
              on_device.as<std::int32_t>(), sizes_of(pointers), cut, windows % 2 == 1, device);
          EXPECT_TRUE(got.size == size_of(host));
          ASSERT_EQ(got.size.spans, std::ssize(host.spans));
          ASSERT_GE(got.spans.bytes(), host.spans.size() * sizeof(TileSpan));
          ASSERT_GE(got.splits.bytes(), host.splits.size() * sizeof(TileSplit));
          EXPECT_TRUE(
              (downloaded<TileSpan>(device, got.spans.data(), host.spans.size()) == host.spans));
          EXPECT_TRUE((downloaded<TileSplit>(device, got.splits.data(), host.splits.size()) ==
                       host.splits));
        }
}

}  // namespace
}  // namespace test
}  // namespace spmmbench
