#include "report/identity.hpp"

#include <fmt/format.h>

namespace spmmbench {

std::string identity_of(const MatrixSummary& matrix) {
  return matrix.sha256.empty() ? fmt::format("{}|{}x{}", matrix.name, matrix.rows, matrix.cols)
                               : fmt::format("{}|{}", matrix.name, matrix.sha256);
}

std::string case_key(const ResultRow& row) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}", identity_of(row.matrix), row.n, row.kernel,
                     row.precision, row.c_type, row.layout, row.reorder);
}

}  // namespace spmmbench
