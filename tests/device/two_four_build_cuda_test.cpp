// 2:4 built on the device against the host build, byte for byte.

#include <gtest/gtest.h>

#include "../../kernels/two_four/device_build.hpp"
#include "core/two_of_four.hpp"
#include "devices.hpp"
#include "downloaded.hpp"
#include "gpu/csr_on_device.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench::test {
namespace {

// Of every group none, one, two or, where `most` allows it, more entries; some are zero.
CsrMatrix grouped(std::int64_t rows, std::int64_t cols, int most, Precision precision) {
  CsrMatrix m{rows, cols, {0}, {}, {}};
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t group = 0; group < cols / 4 && row % 11 != 5; ++group) {
      const int wanted = static_cast<int>((row * 7 + group * 3) % (most + 1));
      int taken = 0;
      for (int i = 0; i < 4 && taken < wanted; ++i) {
        if (4 - i > wanted - taken && (row + group + i) % 3 == 0) continue;
        m.col_idx.push_back(static_cast<std::int32_t>(4 * group + i));
        const float value = uniform_at(9, row, 4 * group + i);
        m.values.push_back((row + group) % 13 == 0 ? 0 : round_to(precision, value));
        ++taken;
      }
    }
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  return m;
}

TEST(TwoFourDeviceBuild, GivesTheBytesOfTheHostBuild) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const Precision precision : {Precision::fp16, Precision::bf16})
    for (const auto& [rows, cols] :
         {std::pair{64, 128}, {1, 4}, {63, 60}, {200, 1000}, {130, 132}}) {
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols));
      const CsrMatrix matrix = grouped(rows, cols, 2, precision);
      const CsrOnDevice a(matrix, precision, device);
      const TwoFour host = TwoFour::build(matrix, storage_type(precision));
      EXPECT_FALSE(two_four::first_row_beyond_two_of_four(a.view()));
      const Buffer got = two_four::build_blocks(a.view(), device);
      ASSERT_EQ(got.bytes(), host.blocks.size() * sizeof(std::uint16_t));
      EXPECT_EQ(downloaded<std::uint16_t>(device, got.data(), host.blocks.size()), host.blocks);
    }
}

TEST(TwoFourDeviceBuild, FindsTheRowThatTheHostFinds) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  const CsrMatrix matrix = grouped(300, 400, 3, Precision::fp16);
  const CsrOnDevice a(matrix, Precision::fp16, device);
  EXPECT_EQ(two_four::first_row_beyond_two_of_four(a.view()), first_row_beyond_two_of_four(matrix));
  EXPECT_THROW(two_four::build_blocks(a.view(), device), Unsupported);
}

}  // namespace
}  // namespace spmmbench::test
