#pragma once
// Column-major B and C for kernels that multiply row-major ones: B is brought to rows, multiplied,
// and C brought to columns, which costs two launches and the memory of both.

#include <cstddef>
#include <functional>
#include <memory>

#include "spmmbench/kernel.hpp"

namespace spmmbench {

// A matrix of one column is the same in both layouts.
inline bool is_by_rows(const Shape& shape) {
  return shape.layout == Layout::col_major && shape.n > 1;
}
// Of the row-major B and C.
std::size_t bytes_by_rows(const Problem& problem);

// What `bind` returns for the shape, or, where it is column-major, for the row-major one.
std::unique_ptr<Plan> bind_by_rows(const SparseOperand& a, const Shape& shape, Device& device,
                                   StageTimer& stages,
                                   const std::function<std::unique_ptr<Plan>(const Shape&)>& bind);

}  // namespace spmmbench
