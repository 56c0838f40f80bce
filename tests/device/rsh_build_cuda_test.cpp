// The records of rsh that are made on the device against those of the host, byte for byte.

#include <gtest/gtest.h>

#include <algorithm>

#include "../../kernels/rsh/device_build.hpp"
#include "devices.hpp"
#include "downloaded.hpp"
#include "format/rs_image.hpp"
#include "gpu/csr_on_device.hpp"
#include "shapes.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench::test {
namespace {

// Empty rows are in no window of the host's, and a stored zero has another sign.
bool is_alike(const CsrMatrix& matrix) {
  for (std::int64_t row = 0; row < matrix.rows; ++row)
    if (matrix.row_length(row) == 0) return false;
  return matrix.nnz() > 0 && std::ranges::find(matrix.values, 0.0F) == matrix.values.end();
}

TEST(RshDeviceBuild, MakesTheRecordsOfTheHost) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  int compared = 0;
  for (const Precision precision : {Precision::fp16, Precision::tf32})
    for (NamedShape& given : all_shapes())
      for (const int height : {8, 16, 32}) {
        CsrMatrix& matrix = given.matrix;
        for (float& value : matrix.values) value = round_to(precision, value);
        if (!is_alike(matrix)) continue;
        SCOPED_TRACE(given.name + " " + std::to_string(height));
        Options options;
        options.set("window", std::to_string(height));
        options.set("tau_nnz", "0");
        const ElementType type = storage_type(precision);
        const RsTile tiles = RsTile::build(matrix, options);
        const RsImage host = RsImage::build(tiles, type);
        const CsrOnDevice a(matrix, precision, device);
        StageTimer stages;
        const DeviceWcsr boxes = build_wcsr(a.view(), {height, RsImage::kTileColumns, type},
                                            nullptr, matrix.rows, device, stages);
        const rsh::DeviceRecords got = rsh::build_records(boxes, device);
        EXPECT_EQ(got.groups, tiles.windows.back().group);
        EXPECT_EQ(boxes.window_ptr_host, host.window_ptr);
        EXPECT_EQ(downloaded<std::int32_t>(device, boxes.col_idx, host.col_idx.size()),
                  host.col_idx);
        EXPECT_EQ(downloaded<std::uint32_t>(device, got.record_ptr.data(), host.record_ptr.size()),
                  host.record_ptr);
        ASSERT_EQ(got.records.bytes(), host.records.size() * sizeof(std::uint32_t));
        EXPECT_EQ(downloaded<std::uint32_t>(device, got.records.data(), host.records.size()),
                  host.records);
        ++compared;
      }
  EXPECT_GT(compared, 10);
}

}  // namespace
}  // namespace spmmbench::test
