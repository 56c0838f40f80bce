#include "report/identity.hpp"

#include <fmt/format.h>

namespace spmmbench {

std::string identity_of(const MatrixSummary& matrix) {
  return matrix.sha256.empty() ? fmt::format("{}|{}x{}", matrix.name, matrix.rows, matrix.cols)
                               : fmt::format("{}|{}", matrix.name, matrix.sha256);
}

std::string division_of(const ResultRow& row) {
  return row.split ? fmt::format("{} on {} GPUs", row.split->name, row.split->gpus) : std::string();
}

std::string case_key(const ResultRow& row) {
  const std::string division = division_of(row);
  return fmt::format("{}|{}|{}|{}|{}|{}|{}{}{}", identity_of(row.matrix), row.n, row.kernel,
                     row.precision, row.c_type, row.layout, row.reorder,
                     division.empty() ? "" : "|", division);
}

}  // namespace spmmbench
