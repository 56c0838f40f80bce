#include "io/dense_values.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <limits>
#include <vector>

#include "io/file.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench {
namespace {

static_assert(std::endian::native == std::endian::little, "the files' arrays are memory");

template <class T>
T value_at(const char* data, std::size_t index) {
  T value{};
  std::memcpy(&value, data + index * sizeof(T), sizeof value);
  return value;
}

template <class Value, class Read>
void copy(std::vector<Value>& values, std::int64_t rows, std::int64_t cols, bool fortran_order,
          Read read) {
  values.resize(rows * cols);
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t col = 0; col < cols; ++col)
      values[row * cols + col] =
          static_cast<Value>(read(fortran_order ? col * rows + row : row * cols + col));
}

}  // namespace

void require_extent(const std::string& name, std::int64_t rows, std::int64_t cols) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (rows < 0 || cols < 0 || rows > kMost || cols > kMost)
    throw Error(
        fmt::format("{}: expected 0 to {} rows and columns, got {} x {}", name, kMost, rows, cols));
}

void require_size(const std::string& name, std::int64_t rows, std::int64_t cols, ElementType type,
                  std::size_t data_bytes) {
  require_extent(name, rows, cols);
  const double values = static_cast<double>(rows) * static_cast<double>(cols);
  const double expected = values * static_cast<double>(bytes_of(type));
  if (expected > 0x1p62 || static_cast<std::size_t>(rows * cols) * bytes_of(type) != data_bytes)
    throw Error(fmt::format("{}: expected {:.0f} byte{} ({} x {} values of {}), got {}", name,
                            expected, expected == 1 ? "" : "s", rows, cols, to_string(type),
                            data_bytes));
  if (const std::size_t available = available_memory_bytes();
      values * sizeof(float) > static_cast<double>(available))
    throw Error(fmt::format("{}: expected a matrix that fits in memory, got {} x {}, {} available",
                            name, rows, cols, format_bytes(static_cast<double>(available))));
}

DenseMatrix widen_values(const std::string& name, std::int64_t rows, std::int64_t cols,
                         ElementType type, std::string_view data, bool fp64, bool fortran_order) {
  require_size(name, rows, cols, type, data.size());
  DenseMatrix out{rows, cols, {}};
  visit_element(type, [&](auto element) {
    using Bits = typename decltype(element)::Bits;
    const auto read = [&](std::size_t i) { return element.decode(value_at<Bits>(data.data(), i)); };
    copy(out.values, rows, cols, fortran_order, read);
    if (fp64 && type == ElementType::f64) copy(out.values64, rows, cols, fortran_order, read);
  });
  return out;
}

}  // namespace spmmbench
