// Gap slices built on the device against the host build, byte for byte.

#include <gtest/gtest.h>

#include <numeric>

#include "../../kernels/gap_slices/device_build.hpp"
#include "devices.hpp"
#include "downloaded.hpp"
#include "gpu/csr_on_device.hpp"
#include "shapes.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench::test {
namespace {

using gap_slices::GapSlices;

template <class T>
void expect_same(Device& device, const Buffer& got, const std::vector<T>& expected,
                 const char* what) {
  ASSERT_EQ(got.bytes(), expected.size() * sizeof(T)) << what;
  EXPECT_TRUE((downloaded<T>(device, got.data(), expected.size()) == expected)) << what;
}

void expect_host_bytes(Device& device, const CsrMatrix& matrix, const GapSlices::Shape& shape,
                       int blocks, const std::vector<std::int32_t>& row_ids) {
  constexpr int kWarps = 16;  // of a block
  const Precision precision = shape.value_bits == 8 ? Precision::fp8_e4m3 : Precision::fp16;
  GapSlices host = GapSlices::build(matrix, storage_type(precision), shape, blocks, kWarps);
  if (!row_ids.empty())
    for (std::int32_t& row : host.slice_rows)
      if (row >= 0) row = row_ids[row];
  const CsrOnDevice a(matrix, precision, device);
  const gap_slices::DeviceSlices got =
      gap_slices::build_slices(a.view(), row_ids, shape, blocks, kWarps, device);
  EXPECT_EQ(got.index.part_cols, host.part_cols);
  expect_same(device, got.slice_rows, host.slice_rows, "rows");
  expect_same(device, got.slice_ptr, host.slice_ptr, "slices");
  expect_same(device, got.block_ptr, host.block_ptr, "blocks");
  expect_same(device, got.slice_warps, host.slice_warps, "warps");
  expect_same(device, got.ranges, host.ranges, "ranges");
  expect_same(device, got.words, host.words, "words");
  expect_same(device, got.starts, host.starts, "starts");
}

TEST(GapsDeviceBuild, GivesTheBytesOfTheHostBuild) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const auto& [name, given] : all_shapes()) {
    CsrMatrix matrix = given;
    for (float& value : matrix.values) value = round_to(Precision::fp8_e4m3, value);  // fp16 too
    if (matrix.nnz() > 0) matrix.values[matrix.nnz() / 2] = 0;  // a stored zero
    std::vector<std::int32_t> reversed(matrix.rows);
    std::iota(reversed.rbegin(), reversed.rend(), 0);
    for (const int row_lanes : {1, 2, 8, 32})
      for (const int gap_bits : {4, 8}) {
        SCOPED_TRACE(name + ", " + std::to_string(row_lanes) + " lanes, gaps of " +
                     std::to_string(gap_bits));
        for (const int value_bits : {8, 16}) {
          const GapSlices::Shape shape{row_lanes, gap_bits, value_bits};
          expect_host_bytes(device, matrix, shape, 132, {});
          expect_host_bytes(device, matrix, shape, 3, reversed);
        }
      }
  }
}

TEST(GapsDeviceBuild, CountsAsTheHost) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const auto& [name, matrix] : all_shapes()) {
    SCOPED_TRACE(name);
    const CsrOnDevice a(matrix, Precision::fp16, device);
    const GapSlices::Counts host = GapSlices::count(matrix), got = gap_slices::count(a.view());
    EXPECT_EQ(got.longest_row, host.longest_row);
    EXPECT_EQ(got.entries_4, host.entries_4);
    EXPECT_EQ(got.entries_8, host.entries_8);
    EXPECT_EQ(GapSlices::choose(got, 132), GapSlices::choose(host, 132));
  }
}

}  // namespace
}  // namespace spmmbench::test
