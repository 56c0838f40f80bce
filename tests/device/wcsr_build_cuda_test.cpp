// The device build of WCSR against the host build, byte for byte.

#include <gtest/gtest.h>

#include <numeric>

#include "../../kernels/async_wcsr/device_build.hpp"
#include "devices.hpp"
#include "shapes.hpp"
#include "spmmbench/random.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::test {
namespace {

template <class T>
std::vector<T> downloaded(Device& device, const Buffer& buffer) {
  std::vector<T> host(buffer.bytes() / sizeof(T));
  if (!host.empty()) device.download(host.data(), buffer.data(), buffer.bytes());
  return host;
}

// Columns so far apart that a window's bits take several turns in shared memory; windows of few
// entries, and one of many.
CsrMatrix wide_matrix() {
  CsrMatrix m{90, 3'000'000, {0}, {}, {}};
  for (std::int64_t row = 0; row < m.rows; ++row) {
    const std::int64_t length = row == 37 ? 5000 : row * 7 % 30;
    for (std::int64_t i = 0; i < length; ++i) {
      m.col_idx.push_back(static_cast<std::int32_t>(m.cols / (length + 1) * i + row % 3));
      m.values.push_back(uniform_at(1, row, i));
    }
    m.row_ptr.push_back(static_cast<std::int64_t>(m.col_idx.size()));
  }
  return m;
}

TEST(WcsrDeviceBuild, GivesTheBytesOfTheHostBuild) {
  SPMMBENCH_TEST_DEVICE(device, DeviceKind::cuda);
  std::vector<NamedShape> shapes = all_shapes();
  shapes.push_back({"wide", wide_matrix()});
  for (NamedShape& shape : shapes)
    for (const Precision precision : {Precision::tf32, Precision::fp16, Precision::bf16}) {
      CsrMatrix& matrix = shape.matrix;
      for (float& value : matrix.values) value = round_to(precision, value);
      if (matrix.nnz() > 0) matrix.values[matrix.nnz() / 2] = 0;
      for (const int window_rows : {8, 16, 32})
        for (const char* order : {"natural", "degree", "random"}) {
          const WcsrShape wcsr_shape{window_rows, 16, storage_type(precision)};
          const Permutation rows = wcsr_row_order(matrix, order);
          const Wcsr host = Wcsr::build(matrix, wcsr_shape, rows);
          StageTimer stages;
          const DeviceWcsr built = build_wcsr(matrix, wcsr_shape, rows, device, stages);
          SCOPED_TRACE(shape.name + " window " + std::to_string(window_rows) + " " + order);
          EXPECT_EQ(built.window_ptr_host, host.window_ptr);
          EXPECT_EQ(downloaded<std::int32_t>(device, built.window_ptr), host.window_ptr);
          EXPECT_EQ(downloaded<std::int32_t>(device, built.col_idx), host.col_idx);
          EXPECT_EQ(static_cast<double>(built.gathered),
                    host.stats().extra.at("gathered_rows_of_b"));
          if (precision == Precision::tf32) {
            EXPECT_EQ(downloaded<std::uint32_t>(device, built.values),
                      std::vector<std::uint32_t>(
                          reinterpret_cast<const std::uint32_t*>(host.values32.data()),
                          reinterpret_cast<const std::uint32_t*>(host.values32.data()) +
                              host.values32.size()));
          } else {
            EXPECT_EQ(downloaded<std::uint16_t>(device, built.values), host.values16);
          }
        }
    }
}

}  // namespace
}  // namespace spmmbench::test
