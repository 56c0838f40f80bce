// Sliced ELLPACK built on the device against a plain construction, bit for bit.

#include <gtest/gtest.h>

#include <algorithm>

#include "../../kernels/cusparse/sell_on_device.hpp"
#include "devices.hpp"
#include "downloaded.hpp"
#include "gpu/csr_on_device.hpp"
#include "shapes.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench::test {
namespace {

using cusparse_sell::DeviceSlices;

constexpr std::int64_t kRows = cusparse_sell::kSliceRows;

// Bits of a value: of the type that CsrOnDevice has them in.
template <class Bits>
struct Sliced {
  std::vector<std::int32_t> offset, col_idx;
  std::vector<Bits> values;
};

template <class Bits>
Sliced<Bits> sliced(const CsrMatrix& a, const std::vector<Bits>& values) {
  Sliced<Bits> out;
  for (std::int64_t first = 0; first < a.rows; first += kRows) {
    out.offset.push_back(static_cast<std::int32_t>(out.col_idx.size()));
    const std::int64_t end = std::min(first + kRows, a.rows);
    std::int64_t longest = 0;
    for (std::int64_t row = first; row < end; ++row) longest = std::max(longest, a.row_length(row));
    for (std::int64_t i = 0; i < longest; ++i)
      for (std::int64_t row = first; row < first + kRows; ++row) {
        const bool is_there = row < end && i < a.row_length(row);
        out.col_idx.push_back(is_there ? a.col_idx[a.row_ptr[row] + i] : -1);
        out.values.push_back(is_there ? values[a.row_ptr[row] + i] : Bits{});
      }
  }
  out.offset.push_back(static_cast<std::int32_t>(out.col_idx.size()));
  return out;
}

template <class Bits>
void expect_slices(Device& device, const CsrOnDevice& a, const Sliced<Bits>& expected) {
  EXPECT_EQ(cusparse_sell::count_entries(a.view()), std::ssize(expected.col_idx));
  const DeviceSlices got = cusparse_sell::build_slices(a.view(), device);
  ASSERT_EQ(got.stored, std::ssize(expected.col_idx));
  EXPECT_EQ(downloaded<std::int32_t>(device, got.offset.data(), expected.offset.size()),
            expected.offset);
  EXPECT_EQ(downloaded<std::int32_t>(device, got.col_idx.data(), expected.col_idx.size()),
            expected.col_idx);
  EXPECT_EQ(downloaded<Bits>(device, got.values.data(), expected.values.size()), expected.values);
}

// Rows of few entries, so that some slices have none; the last slice has 5 rows.
CsrMatrix mostly_empty() {
  CsrMatrix m{1029, 3000, {0}, {}, {}};
  for (std::int64_t row = 0; row < m.rows; ++row) {
    if (row / kRows % 3 == 1 && row % 5 == 0)
      for (std::int64_t i = 0; i < row % 11; ++i) {
        m.col_idx.push_back(static_cast<std::int32_t>(row + 100 * i));
        m.values.push_back(uniform_at(6, row, i));
      }
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  return m;
}

TEST(SellDeviceBuild, GivesTheBitsOfAPlainConstruction) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  std::vector<NamedShape> shapes = all_shapes();
  shapes.push_back({"mostly empty", mostly_empty()});
  shapes.push_back({"no row", CsrMatrix{0, 5, {0}, {}, {}}});
  for (const auto& [name, given] : shapes)
    for (const Precision precision : {Precision::fp16, Precision::fp32, Precision::fp64}) {
      SCOPED_TRACE(name + ", " + std::string(to_string(precision)));
      CsrMatrix matrix = given;
      if (precision == Precision::fp64) {
        matrix.values64.assign(matrix.values.begin(), matrix.values.end());
        const CsrOnDevice a(matrix, precision, device);
        expect_slices(device, a, sliced(matrix, matrix.values64));
        continue;
      }
      for (float& value : matrix.values) value = round_to(precision, value);
      const CsrOnDevice a(matrix, precision, device);
      visit_element(storage_type(precision), [&](auto element) {
        expect_slices(device, a, sliced(matrix, encode_values(matrix.values, element)));
      });
    }
}

// Counting needs row_ptr alone: here 2 slices of a row of 2^31 - 1 entries.
TEST(SellDeviceBuild, CountsMoreThan32Bits) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  constexpr std::int64_t kLongest = (std::int64_t{1} << 31) - 1;
  std::vector<std::int64_t> row_ptr(35, kLongest);
  row_ptr[0] = 0;
  row_ptr[34] = 2 * kLongest;
  const Buffer on_device = device.upload(row_ptr);
  DeviceCsr a{.rows = 34, .cols = kLongest, .nnz = 2 * kLongest};
  a.row_ptr = on_device.as<std::int64_t>();
  EXPECT_EQ(cusparse_sell::count_entries(a), 2 * kRows * kLongest);
}

}  // namespace
}  // namespace spmmbench::test
