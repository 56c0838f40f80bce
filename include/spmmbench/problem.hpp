#pragma once
// One product C[M,N] = A[M,K] * B[K,N] as every kernel sees it.

#include <cstdint>
#include <span>

#include "spmmbench/device.hpp"
#include "spmmbench/matrix.hpp"
#include "spmmbench/precision.hpp"
#include "spmmbench/spec.hpp"

namespace spmmbench {

struct Problem {
  // A, its values already rounded to `precision`. Outlives every plan made from this problem.
  const CsrMatrix* a = nullptr;
  // Row i of `a` is row row_ids[i] of C. Empty means the identity. Only kernels whose info says
  // `writes_row_ids` are given any.
  std::span<const std::int32_t> row_ids;
  std::int64_t n = 0;
  Precision precision = Precision::fp32;
  ElementType c_type = ElementType::f32;
  Layout layout = Layout::row_major;  // of B and C
  // B as it lies on the plan's device; `data` is null while only `supports` is asked. A plan may
  // preprocess it in a stage of its own (operand patterns); launch receives it again.
  DenseView b;
  Options options;  // the kernel's own

  std::int64_t m() const { return a->rows; }
  std::int64_t k() const { return a->cols; }
  std::int64_t nnz() const { return a->nnz(); }
};

}  // namespace spmmbench
