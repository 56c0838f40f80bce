#include "io/dense_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <vector>

#include "io/dense_values.hpp"
#include "io/file.hpp"
#include "io/npy.hpp"
#include "io/output.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {

namespace {

void write_values(OutputFile& file, const DenseMatrix& matrix) {
  if (matrix.values64.empty())
    file.write(matrix.values.data(), matrix.values.size() * sizeof(float));
  else file.write(matrix.values64.data(), matrix.values64.size() * sizeof(double));
}

}  // namespace

DenseMatrix read_npy(const std::string& path, bool fp64) {
  const MappedFile file(path);
  return parse_npy_matrix(file.bytes(), path, fp64);
}

DenseMatrix read_bin(const std::string& path, std::int64_t rows, std::int64_t cols,
                     ElementType type, bool fp64) {
  const MappedFile file(path);
  const std::string_view data = file.bytes();
  if (const std::string foreign = describe_foreign_content(data);
      foreign.starts_with("a Git LFS") || foreign.starts_with("an HTML"))
    throw Error(fmt::format("{}: expected {} values, got {}", path, to_string(type), foreign));
  const double values = static_cast<double>(rows) * static_cast<double>(cols);
  const double width = static_cast<double>(data.size()) / values;  // bytes of a value
  std::vector<std::string_view> fitting;
  for (const ElementType other : kElementTypes)
    if (width == static_cast<double>(bytes_of(other))) fitting.push_back(to_string(other));
  if (!fitting.empty() && width != static_cast<double>(bytes_of(type)))
    throw Error(fmt::format(
        "{}: expected {:.0f} bytes ({} x {} values of {}), got {}, as many as {:.0f}-bit values "
        "take: say --bin-type {}",
        path, values * static_cast<double>(bytes_of(type)), rows, cols, to_string(type),
        data.size(), 8 * width, fmt::join(fitting, " or ")));
  return widen_values(path, rows, cols, type, data, fp64);
}

void write_npy(const std::string& path, const DenseMatrix& matrix) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  constexpr std::size_t kAlignment = 64;
  std::string dictionary =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}, {}), }}",
                  matrix.values64.empty() ? "<f4" : "<f8", matrix.rows, matrix.cols);
  const std::size_t unpadded = kMagic.size() + 4 + dictionary.size() + 1;
  dictionary.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  dictionary += '\n';
  const auto length = static_cast<std::uint16_t>(dictionary.size());
  OutputFile file(path);
  file.write(kMagic);
  file.write(std::string_view("\x01\x00", 2));
  file.write(&length, sizeof length);
  file.write(dictionary);
  write_values(file, matrix);
  file.commit();
}

void write_bin(const std::string& path, const DenseMatrix& matrix) {
  OutputFile file(path);
  write_values(file, matrix);
  file.commit();
}

CsrMatrix to_csr(const DenseMatrix& dense) {
  CsrMatrix csr{dense.rows, dense.cols, std::vector<std::int64_t>(dense.rows + 1), {}, {}};
  const bool fp64 = !dense.values64.empty();
  const auto stored = [&](std::int64_t at) { return !(dense.value(at) == 0); };
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < dense.rows; ++row)
    for (std::int64_t at = row * dense.cols; at < (row + 1) * dense.cols; ++at)
      csr.row_ptr[row + 1] += stored(at) ? 1 : 0;
  for (std::int64_t row = 0; row < dense.rows; ++row) csr.row_ptr[row + 1] += csr.row_ptr[row];
  csr.col_idx.resize(csr.nnz());
  csr.values.resize(csr.nnz());
  if (fp64) csr.values64.resize(csr.nnz());
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < dense.rows; ++row) {
    std::int64_t e = csr.row_ptr[row];
    for (std::int64_t col = 0; col < dense.cols; ++col) {
      const std::int64_t at = row * dense.cols + col;
      if (!stored(at)) continue;
      csr.col_idx[e] = static_cast<std::int32_t>(col);
      csr.values[e] = dense.values[at];
      if (fp64) csr.values64[e] = dense.values64[at];
      ++e;
    }
  }
  return csr;
}

DenseMatrix to_dense(const CsrMatrix& csr) {
  DenseMatrix dense{csr.rows, csr.cols, {}};
  dense.values.resize(csr.rows * csr.cols);
  const bool fp64 = !csr.values64.empty();
  if (fp64) dense.values64.resize(csr.rows * csr.cols);
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < csr.rows; ++row)
    for (std::int64_t e = csr.row_ptr[row]; e < csr.row_ptr[row + 1]; ++e) {
      const std::int64_t at = row * csr.cols + csr.col_idx[e];
      dense.values[at] = csr.values[e];
      if (fp64) dense.values64[at] = csr.values64[e];
    }
  return dense;
}

}  // namespace spmmbench
