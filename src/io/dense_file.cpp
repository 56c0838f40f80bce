#include "io/dense_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "io/dense_values.hpp"
#include "io/file.hpp"
#include "io/npy.hpp"
#include "io/output.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {

DenseMatrix read_npy(const std::string& path) {
  const MappedFile file(path);
  return parse_npy_matrix(file.bytes(), path);
}

DenseMatrix read_bin(const std::string& path, std::int64_t rows, std::int64_t cols,
                     ElementType type) {
  const MappedFile file(path);
  const std::string_view data = file.bytes();
  if (const std::string foreign = describe_foreign_content(data.substr(0, 256));
      foreign.starts_with("a Git LFS") || foreign.starts_with("an HTML"))
    throw Error(fmt::format("{}: expected {} values, got {}", path, to_string(type), foreign));
  const double values = static_cast<double>(rows) * static_cast<double>(cols);
  const double width = static_cast<double>(data.size()) / values;  // bytes of a value
  if (const bool wide = type == ElementType::f32; width == (wide ? 2 : 4))
    throw Error(fmt::format(
        "{}: expected {:.0f} bytes ({} x {} values of {}), got {}, as many as {}-bit values take: "
        "say --bin-type {}",
        path, values * static_cast<double>(bytes_of(type)), rows, cols, to_string(type),
        data.size(), wide ? 16 : 32, wide ? "fp16 or bf16" : "fp32"));
  return widen_values(path, rows, cols, type, data);
}

void write_npy(const std::string& path, const DenseMatrix& matrix) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  constexpr std::size_t kAlignment = 64;
  std::string dictionary = fmt::format(
      "{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", matrix.rows, matrix.cols);
  const std::size_t unpadded = kMagic.size() + 4 + dictionary.size() + 1;
  dictionary.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  dictionary += '\n';
  const auto length = static_cast<std::uint16_t>(dictionary.size());
  OutputFile file(path);
  file.write(kMagic);
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
