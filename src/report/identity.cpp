#include "report/identity.hpp"

#include <fmt/format.h>

namespace spmmbench {

std::string identity_of(const MatrixSummary& matrix) {
  return matrix.sha256.empty() ? fmt::format("{}|{}x{}", matrix.name, matrix.rows, matrix.cols)
                               : fmt::format("{}|{}", matrix.name, matrix.sha256);
}

std::string operation_of(const ResultRow& row) {
  std::string text;
  if (row.alpha != 1 || row.beta != 0) text = fmt::format("{} A B", row.alpha);
  if (row.beta != 0) text += fmt::format(" + {} C", row.beta);
  const auto add = [&text](const std::string& more) { text += (text.empty() ? "" : ", ") + more; };
  if (row.batch != 1) add(fmt::format("a batch of {}", row.batch));
  if (row.split) add(fmt::format("{} on {} GPUs", row.split->name, row.split->gpus));
  return text;
}

std::string case_key(const ResultRow& row) {
  const std::string operation = operation_of(row);
  return fmt::format("{}|{}|{}|{}|{}|{}|{}{}{}", identity_of(row.matrix), row.n, row.kernel,
                     row.precision, row.c_type, row.layout, row.reorder,
                     operation.empty() ? "" : "|", operation);
}

}  // namespace spmmbench
