#pragma once
// What makes two rows the same case, in one run and in any other. The path of a matrix is told and
// never compared.

#include <string>

#include "spmmbench/result.hpp"

namespace spmmbench {

// Name and content, the SHA-256 of which has the dimensions too; without it, name and dimensions.
std::string identity_of(const MatrixSummary& matrix);

// What is done with A and B besides C = A B on one GPU: "1.5 A B + 0.5 C", "a batch of 8", "rows on
// 2 GPUs"; empty where nothing is.
std::string operation_of(const ResultRow& row);

// The matrix by its identity, N, kernel, precision, type of C, layout, row order and operation.
std::string case_key(const ResultRow& row);

}  // namespace spmmbench
