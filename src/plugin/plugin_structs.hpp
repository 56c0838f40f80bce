#pragma once
// What a kernel of a library is given: a problem, A, B and C in the structs of plugin.h.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "spmmbench/kernel.hpp"
#include "spmmbench/plugin.h"

namespace spmmbench {

bool wants_a_on_device(const spmmbench_kernel& kernel);

// The type of A's values as the kernel gets them.
ElementType value_type_of(const spmmbench_kernel& kernel, const SparseOperand& a);

// What the program holds on the device for the plans of a kernel.
std::size_t kept_bytes(const spmmbench_kernel& kernel, const SparseOperand& a);

// A in the types and the memory that a kernel asks for. Arrays that need no conversion are the
// program's own.
class OperandArrays {
 public:
  OperandArrays(const spmmbench_kernel& kernel, const SparseOperand& a);

  const spmmbench_csr& c() const { return c_; }

  void upload(Device& device);  // copies the arrays to the device

 private:
  using Bytes = std::vector<unsigned char>;

  const void* encode(const std::vector<float>& from, ElementType type);

  spmmbench_csr c_, on_host_ = {};
  Bytes row_ptr_, col_idx_, values_;
  std::array<Buffer, 4> on_device_;
};

// The problem in the structs of the interface. `arrays` outlives it.
class ProblemOfC {
 public:
  ProblemOfC(const OperandArrays& arrays, const Options& options, Precision precision);
  ProblemOfC(const ProblemOfC&) = delete;
  ProblemOfC& operator=(const ProblemOfC&) = delete;
  const spmmbench_problem* c() const { return &c_; }

 private:
  std::vector<const char*> options_;
  spmmbench_problem c_;
};

spmmbench_shape shape_of_c(const Shape& shape);

inline spmmbench_dense dense_of_c(const DenseView& view) {
  return {sizeof(spmmbench_dense),
          view.data,
          view.rows,
          view.cols,
          view.ld,
          static_cast<std::int32_t>(view.layout),
          static_cast<std::int32_t>(view.type),
          view.scale};
}

}  // namespace spmmbench
