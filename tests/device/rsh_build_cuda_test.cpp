// The records of rsh that are made on the device against those of the host, byte for byte.

#include <gtest/gtest.h>

#include <algorithm>

#include "../../kernels/rsh/device_build.hpp"
#include "../../kernels/rsh/device_partition.hpp"
#include "devices.hpp"
#include "downloaded.hpp"
#include "gpu/csr_on_device.hpp"
#include "rsh/image.hpp"
#include "shapes.hpp"
#include "spmmbench/random.hpp"
#include "spmmbench/registry.hpp"
#include "spmmbench/reordering.hpp"

namespace spmmbench::test {
namespace {

using rsh::RsImage;
using rsh::RsTile;

// Empty rows are in no window of the host's, and a stored zero has another sign.
bool is_alike(const CsrMatrix& matrix) {
  for (std::int64_t row = 0; row < matrix.rows; ++row)
    if (matrix.row_length(row) == 0) return false;
  return matrix.nnz() > 0 && std::ranges::find(matrix.values, 0.0F) == matrix.values.end();
}

TEST(RshDeviceBuild, MakesTheRecordsOfTheHost) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  int compared = 0;
  for (const Precision precision :
       {Precision::fp16, Precision::tf32, Precision::fp8_e4m3, Precision::fp8_e5m2})
    for (const NamedShape& given : all_shapes())
      for (const int height : {8, 16, 32}) {
        CsrMatrix matrix = given.matrix;
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

// Of each place in the order of `rows`, which may be empty, to the row of A.
std::vector<std::int32_t> rows_at(const Permutation& rows, std::vector<std::int32_t> places) {
  if (!rows.empty())
    for (std::int32_t& place : places) place = rows[place];
  return places;
}

void expect_partition(Device& device, const CsrMatrix& matrix, const Permutation& order,
                      Precision precision, const Options& options) {
  const RsTile host = RsTile::build(order.empty() ? matrix : permute_rows(matrix, order), options);
  std::vector<std::int32_t> in_windows, empty;
  for (std::int64_t w = 0; w < host.window_count(); ++w)
    for (const std::int32_t place : host.rows_of(w)) in_windows.push_back(place);
  std::vector<char> taken(matrix.rows, 0);
  for (const std::int32_t place : in_windows) taken[place] = 1;
  for (const std::int32_t place : host.residual_row) taken[place] = 1;
  std::vector<std::int32_t> residual;
  for (std::int64_t place = 0; place < matrix.rows; ++place)
    if (taken[place] == 0) residual.push_back(static_cast<std::int32_t>(place));
  const auto empties = static_cast<std::int32_t>(residual.size());
  residual.insert(residual.end(), host.residual_row.begin(), host.residual_row.end());

  const CsrOnDevice a(matrix, precision, device);
  const rsh::DevicePartition got = rsh::partition_rows(a.view(), device.upload(order),
                                                       RsTile::partition_options(options), device);
  ASSERT_EQ(got.row_count, std::ssize(in_windows));
  ASSERT_EQ(got.residual.count, std::ssize(residual));
  ASSERT_EQ(got.residual_entries, std::ssize(host.residual_col));
  EXPECT_EQ(downloaded<std::int32_t>(device, got.rows.data(), in_windows.size()),
            rows_at(order, in_windows));
  EXPECT_EQ(downloaded<std::int32_t>(device, got.residual_rows.data(), residual.size()),
            rows_at(order, residual));
  EXPECT_EQ(downloaded<std::int32_t>(device, got.residual_cols.data(), host.residual_col.size()),
            host.residual_col);
  visit_element(storage_type(precision), [&](auto element) {
    const auto values = encode_values(host.residual_value, element);
    using Bits = typename decltype(element)::Bits;
    EXPECT_EQ(downloaded<Bits>(device, got.residual_values.data(), values.size()), values);
  });
  for (int length = 1; length <= rsh::Residual::kLengths; ++length)
    EXPECT_EQ(got.residual.first[length], empties + host.residual_offset[length]) << length;
  for (int length = 1; length < rsh::Residual::kLengths; ++length)
    EXPECT_EQ(got.residual.entry[length], host.residual_start(length)) << length;
}

TEST(RshDeviceBuild, FindsTheResidualRowsOfTheHost) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const Precision precision : {Precision::fp16, Precision::tf32})
    for (const NamedShape& given : all_shapes()) {
      CsrMatrix matrix = given.matrix;
      for (float& value : matrix.values) value = round_to(precision, value);
      StageTimer stages;
      const auto orders = make_row_orders(matrix, {"none", {}});
      for (const char* rule : {"overlap", "printed"})
        for (const char* tau_nnz : {"1", "2", "32"})
          for (const int height : {8, 32}) {
            SCOPED_TRACE(given.name + " " + rule + " " + tau_nnz + " " + std::to_string(height));
            Options options;
            options.set("window", std::to_string(height));
            options.set("rule", rule);
            options.set("tau_nnz", tau_nnz);
            if (height == 32) options.set("tau_delta", "1");
            for (const char* order : {"natural", "random"})
              expect_partition(device, matrix, orders->get(order, stages), precision, options);
          }
    }
}

TEST(RshDeviceBuild, CountsShortRows) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  for (const auto& [name, matrix] : all_shapes()) {
    std::int64_t rows = 0;
    for (std::int64_t row = 0; row < matrix.rows; ++row)
      rows += matrix.row_length(row) == 1 || matrix.row_length(row) == 2;
    const CsrOnDevice a(matrix, Precision::fp16, device);
    EXPECT_EQ(rsh::count_short_rows(a.view(), 2, device), rows) << name;
  }
}

}  // namespace
}  // namespace spmmbench::test
