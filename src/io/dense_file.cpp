#include "io/dense_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "io/file.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench {
namespace {

static_assert(std::endian::native == std::endian::little, "the files' arrays are memory");

// Checks the shape and the size of the data before anything is allocated.
void check_size(const std::string& path, std::int64_t rows, std::int64_t cols,
                std::size_t element_bytes, std::size_t data_bytes) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (rows < 0 || cols < 0 || rows > kMost || cols > kMost)
    throw Error(
        fmt::format("{}: expected 0 to {} rows and columns, got {} x {}", path, kMost, rows, cols));
  const auto expected =
      static_cast<double>(rows) * static_cast<double>(cols) * static_cast<double>(element_bytes);
  if (expected > 0x1p62 || static_cast<std::size_t>(rows * cols) * element_bytes != data_bytes)
    throw Error(fmt::format("{}: expected {:.0f} bytes ({} x {} values of {} bytes), got {}", path,
                            expected, rows, cols, element_bytes, data_bytes));
  if (const std::size_t available = available_memory_bytes();
      static_cast<double>(rows) * static_cast<double>(cols) * sizeof(float) >
      static_cast<double>(available))
    throw Error(fmt::format("{}: expected a matrix that fits in memory, got {} x {}, {} available",
                            path, rows, cols, format_bytes(static_cast<double>(available))));
}

constexpr std::string_view kNpyMagic = "\x93NUMPY";

struct NpyHeader {
  std::size_t element_bytes = 0;
  bool fortran_order = false;
  std::int64_t rows = 0, cols = 0;
  std::size_t bytes = 0;  // where the data begin
};

// The text after `key': ` in the header's dictionary, a Python literal.
std::string_view npy_field(const std::string& path, std::string_view dictionary,
                           std::string_view key) {
  std::size_t at = dictionary.find(fmt::format("'{}':", key));
  if (at != std::string_view::npos) at = dictionary.find_first_not_of(' ', at + key.size() + 3);
  if (at == std::string_view::npos)
    throw Error(fmt::format("{}: expected '{}' in the .npy header", path, key));
  return dictionary.substr(at);
}

// "(3, 4)" to {3, 4}
std::optional<std::pair<std::int64_t, std::int64_t>> parse_shape(std::string_view text) {
  std::int64_t sizes[2] = {};
  const char *p = text.data(), *const end = p + text.size();
  const auto skip = [&](char c) {
    while (p < end && *p == ' ') ++p;
    return p < end && *p == c && (++p, true);
  };
  if (!skip('(')) return {};
  for (std::int64_t& size : sizes) {
    while (p < end && *p == ' ') ++p;
    const auto [last, error] = std::from_chars(p, end, size);
    if (error != std::errc{}) return {};
    p = last;
    if (&size == sizes && !skip(',')) return {};
  }
  skip(',');
  if (!skip(')')) return {};
  return std::pair{sizes[0], sizes[1]};
}

NpyHeader parse_npy_header(const std::string& path, std::string_view file) {
  constexpr std::size_t kPreamble = 8;  // magic, major and minor version
  if (file.size() < kPreamble + 4 || !file.starts_with(kNpyMagic)) {
    const std::string foreign = describe_foreign_content(file.substr(0, 256));
    throw Error(fmt::format("{}: expected a NumPy .npy file, got {}", path,
                            foreign.empty() ? quote(file.substr(0, 8)) : foreign));
  }
  // The length of the dictionary is 16 bits in version 1 and 32 bits since.
  const std::size_t length_bytes = file[6] == 1 ? 2 : 4;
  std::uint32_t length = 0;
  std::memcpy(&length, file.data() + kPreamble, length_bytes);
  NpyHeader header;
  header.bytes = kPreamble + length_bytes + length;
  if (header.bytes > file.size())
    throw Error(fmt::format("{}: truncated: expected a .npy header of {} bytes, got {}", path,
                            header.bytes, file.size()));
  const std::string_view dictionary = file.substr(kPreamble + length_bytes, length);

  const std::string_view type = npy_field(path, dictionary, "descr");
  if (type.starts_with("'<f2'")) header.element_bytes = 2;
  else if (type.starts_with("'<f4'")) header.element_bytes = 4;
  else if (type.starts_with("'<f8'")) header.element_bytes = 8;
  else
    throw Error(fmt::format("{}: expected little-endian float16, float32 or float64, got {}", path,
                            quote(type.substr(0, type.find(',')))));
  header.fortran_order = npy_field(path, dictionary, "fortran_order").starts_with("True");
  const std::string_view shape = npy_field(path, dictionary, "shape");
  const auto sizes = parse_shape(shape);
  if (!sizes)
    throw Error(fmt::format("{}: expected a 2-D shape (rows, columns), got {}", path,
                            quote(shape.substr(0, shape.find(')') + 1))));
  std::tie(header.rows, header.cols) = *sizes;
  return header;
}

float element_at(const char* data, std::size_t index, std::size_t element_bytes) {
  if (element_bytes == 2) {
    std::uint16_t half = 0;
    std::memcpy(&half, data + 2 * index, sizeof half);
    return Element<ElementType::f16>::decode(half);
  }
  if (element_bytes == 8) {
    double value = 0;
    std::memcpy(&value, data + 8 * index, sizeof value);
    return static_cast<float>(value);
  }
  float value = 0;
  std::memcpy(&value, data + 4 * index, sizeof value);
  return value;
}

}  // namespace

DenseMatrix read_npy(const std::string& path) {
  const MappedFile file(path);
  const NpyHeader header = parse_npy_header(path, file.bytes());
  const std::string_view data = file.bytes().substr(header.bytes);
  check_size(path, header.rows, header.cols, header.element_bytes, data.size());
  DenseMatrix out{header.rows, header.cols, {}};
  out.values.resize(header.rows * header.cols);
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < header.rows; ++row)
    for (std::int64_t col = 0; col < header.cols; ++col)
      out.values[row * header.cols + col] = element_at(
          data.data(), header.fortran_order ? col * header.rows + row : row * header.cols + col,
          header.element_bytes);
  return out;
}

DenseMatrix read_bin(const std::string& path, std::int64_t rows, std::int64_t cols) {
  const MappedFile file(path);
  const std::string_view data = file.bytes();
  if (const std::string foreign = describe_foreign_content(data.substr(0, 256));
      foreign.starts_with("a Git LFS") || foreign.starts_with("an HTML"))
    throw Error(fmt::format("{}: expected fp32 values, got {}", path, foreign));
  check_size(path, rows, cols, sizeof(float), data.size());
  DenseMatrix out{rows, cols, {}};
  out.values.resize(rows * cols);
  if (!data.empty()) std::memcpy(out.values.data(), data.data(), data.size());
  return out;
}

void write_npy(const std::string& path, const DenseMatrix& matrix) {
  constexpr std::size_t kAlignment = 64;
  std::string dictionary = fmt::format(
      "{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", matrix.rows, matrix.cols);
  const std::size_t unpadded = kNpyMagic.size() + 4 + dictionary.size() + 1;
  dictionary.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  dictionary += '\n';
  const auto length = static_cast<std::uint16_t>(dictionary.size());
  OutputFile file(path);
  file.write(kNpyMagic);
  file.write(std::string_view("\x01\x00", 2));
  file.write(&length, sizeof length);
  file.write(dictionary);
  file.write(matrix.values.data(), matrix.values.size() * sizeof(float));
  file.commit();
}

void write_bin(const std::string& path, const DenseMatrix& matrix) {
  OutputFile file(path);
  file.write(matrix.values.data(), matrix.values.size() * sizeof(float));
  file.commit();
}

CsrMatrix to_csr(const DenseMatrix& dense) {
  CsrMatrix csr{dense.rows, dense.cols, std::vector<std::int64_t>(dense.rows + 1), {}, {}};
  const auto row_of = [&](std::int64_t row) { return dense.values.data() + row * dense.cols; };
  const auto stored = [](float value) { return !(value == 0); };
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < dense.rows; ++row)
    csr.row_ptr[row + 1] = std::count_if(row_of(row), row_of(row) + dense.cols, stored);
  for (std::int64_t row = 0; row < dense.rows; ++row) csr.row_ptr[row + 1] += csr.row_ptr[row];
  csr.col_idx.resize(csr.nnz());
  csr.values.resize(csr.nnz());
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < dense.rows; ++row) {
    std::int64_t at = csr.row_ptr[row];
    for (std::int64_t col = 0; col < dense.cols; ++col)
      if (const float value = row_of(row)[col]; stored(value)) {
        csr.col_idx[at] = static_cast<std::int32_t>(col);
        csr.values[at++] = value;
      }
  }
  return csr;
}

DenseMatrix to_dense(const CsrMatrix& csr) {
  DenseMatrix dense{csr.rows, csr.cols, {}};
  dense.values.resize(csr.rows * csr.cols);
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < csr.rows; ++row)
    for (std::int64_t e = csr.row_ptr[row]; e < csr.row_ptr[row + 1]; ++e)
      dense.values[row * csr.cols + csr.col_idx[e]] = csr.values[e];
  return dense;
}

}  // namespace spmmbench
