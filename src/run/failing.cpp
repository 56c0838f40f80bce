#include "run/failing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>
#include <vector>

#include "core/block_scales.hpp"
#include "io/dense_file.hpp"
#include "io/matrix_market.hpp"
#include "io/sha256.hpp"
#include "report/identity.hpp"
#include "report/journal.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/reference_sum.hpp"
#include "spmmbench/reordering.hpp"
#include "verify/reference.hpp"

namespace spmmbench {
namespace {

constexpr std::size_t kHashDigits = 8;

DenseMatrix fetch(const DenseView& view, Device& device) {
  std::vector<unsigned char> image(view.bytes());
  device.download(image.data(), view.data, image.size());
  std::vector<float> scales(view.block_scales == nullptr ? 0 : scales_of_b(view.rows, view.cols));
  if (!scales.empty())
    device.download(scales.data(), view.block_scales, scales.size() * sizeof(float));
  DenseView host = view;
  host.data = image.data();
  DenseMatrix matrix{view.rows, view.cols, {}};
  matrix.values.reserve(view.rows * view.cols);
  const bool fp64 = view.type == ElementType::f64;
  for (std::int64_t i = 0; i < view.rows; ++i)
    for (std::int64_t j = 0; j < view.cols; ++j) {
      const double scale = scales.empty() ? view.scale : scales[scale_at_b(i, j, view.cols)];
      matrix.values.push_back(static_cast<float>(scale * element_at(host, i, j)));
      if (fp64) matrix.values64.push_back(element_at(host, i, j));
    }
  return matrix;
}

// A with its rows in the order of C.
CsrMatrix in_own_order(const Problem& problem) {
  CsrMatrix a = *problem.a;
  for (std::int64_t row = 0; row < (a.block_scales.empty() ? 0 : a.rows); ++row)
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
      a.values[e] *= block_scale(a, row, a.col_idx[e]);
  if (!problem.row_ids.empty()) {
    Permutation back(problem.row_ids.size());
    for (std::size_t i = 0; i < back.size(); ++i)
      back[problem.row_ids[i]] = static_cast<std::int32_t>(i);
    a = permute_rows(a, back);
  }
  if (problem.a->scale != 1)
    for (float& value : a.values) value *= problem.a->scale;
  return a;
}

// alpha * A * B + beta * C, rounded once.
DenseMatrix result(const CsrMatrix& a, const DenseMatrix& b, const Update& update) {
  DenseMatrix c{a.rows, b.cols, std::vector<float>(static_cast<std::size_t>(a.rows * b.cols))};
  if (!b.values64.empty()) c.values64.resize(c.values.size());
  std::vector<TwoTermSum> sums(static_cast<std::size_t>(b.cols));
  for (std::int64_t row = 0; row < a.rows; ++row) {
    std::fill(sums.begin(), sums.end(), TwoTermSum{});
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
      for (std::int64_t j = 0; j < b.cols; ++j)
        sums[j].add(a.value(e), b.value(a.col_idx[e] * b.cols + j));
    for (std::int64_t j = 0; j < b.cols; ++j) {
      sums[j].finish();
      const double value = updated(sums[j], update, row, j).sum;
      c.values[row * c.cols + j] = static_cast<float>(value);
      if (!c.values64.empty()) c.values64[row * c.cols + j] = value;
    }
  }
  return c;
}

DenseMatrix start(const DenseView& c, const StartOfC& start) {
  DenseMatrix matrix{c.rows, c.cols, {}};
  for (std::int64_t i = 0; i < c.rows; ++i)
    for (std::int64_t j = 0; j < c.cols; ++j) {
      matrix.values.push_back(static_cast<float>(start.at(i, j)));
      if (c.type == ElementType::f64) matrix.values64.push_back(start.at(i, j));
    }
  return matrix;
}

std::string short_hash(const std::string& text) {
  Sha256 hash;
  hash.update(text.data(), text.size());
  return hash.hex().substr(0, kHashDigits);
}

// The names of the case and two hashes, which tell matrices of one name, and cases that differ in
// something else, apart. All but letters, digits, dots and dashes become underscores.
std::string folder_name(const ResultRow& row) {
  constexpr std::size_t kLongest = 200;  // file systems allow 255 bytes
  std::string name =
      fmt::format("{}-n{}-{}-{}-{}", row.matrix.name, row.n, row.kernel, row.precision, row.reorder)
          .substr(0, kLongest);
  name +=
      fmt::format("-{}-{}", row.matrix.sha256.substr(0, kHashDigits), short_hash(case_key(row)));
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '-') c = '_';
  return name;
}

}  // namespace

std::string save_failing(const std::string& folder, const ResultRow& row, const Problem& problem,
                         const DenseView& b, const DenseView& c, const Update& update,
                         Device& device) {
  const std::filesystem::path path = std::filesystem::path(folder) / folder_name(row);
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw Error(fmt::format("{}: {}", path.string(), error.message()));
  const CsrMatrix a = in_own_order(problem);
  const DenseMatrix host_b = fetch(b, device);
  write_matrix_market((path / "a.mtx").string(), a, false);
  write_npy((path / "b.npy").string(), host_b);
  write_npy((path / "got.npy").string(), fetch(c, device));
  write_npy((path / "want.npy").string(), result(a, host_b, update));
  if (update.beta != 0) write_npy((path / "c.npy").string(), start(c, update.start));
  return path.string();
}

}  // namespace spmmbench
