#include "io/matrix_output.hpp"

#include <fmt/format.h>

#include "io/csr_cache.hpp"
#include "io/dense_file.hpp"
#include "io/file.hpp"
#include "io/matrix_market.hpp"
#include "io/output.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

enum class Output { unknown, matrix_market, csr, npy, bin };

Output output_format(const std::string& path) {
  if (path.ends_with(".mtx") || path.ends_with(".mtx.gz")) return Output::matrix_market;
  if (path.ends_with(".csr")) return Output::csr;
  if (path.ends_with(".npy")) return Output::npy;
  if (path.ends_with(".bin")) return Output::bin;
  return Output::unknown;
}

DenseMatrix checked_dense(const std::string& path, const CsrMatrix& matrix) {
  const double bytes =
      static_cast<double>(matrix.rows) * static_cast<double>(matrix.cols) * sizeof(float);
  if (bytes > kLargestDenseBytes)
    throw Error(fmt::format("{}: expected a dense matrix of at most {}, got {} x {}: {}", path,
                            format_bytes(kLargestDenseBytes), matrix.rows, matrix.cols,
                            format_bytes(bytes)));
  return to_dense(matrix);
}

}  // namespace

void require_output(const std::string& path) {
  if (output_format(path) == Output::unknown)
    throw Error(fmt::format(
        "{}: expected an output name that ends in .mtx, .mtx.gz, .csr, .npy or .bin", path));
  if (!is_stream(path)) OutputFile{path};  // given up again
}

void write_matrix(const std::string& path, const CsrMatrix& matrix, bool pattern) {
  require_output(path);
  switch (output_format(path)) {
    case Output::matrix_market: return write_matrix_market(path, matrix, pattern);
    case Output::csr: return write_csr_cache(path, matrix, pattern);
    case Output::npy: return write_npy(path, checked_dense(path, matrix));
    case Output::bin: return write_bin(path, checked_dense(path, matrix));
    case Output::unknown: return;
  }
}

}  // namespace spmmbench
