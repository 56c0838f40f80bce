#pragma once
// What kernels that read a caller's values themselves have in common.

#include "gpu/given_csr.hpp"
#include "spmmbench/kernel.hpp"
#include "spmmbench/replacing.hpp"

namespace spmmbench {

// Those that lie in the operand.
inline NewValues values_of(const SparseOperand& a) {
  return {a.on_device->values, a.nnz(), a.on_device->value_type, a.precision, nullptr};
}

// Brings them into the operand where that is still to be done.
inline void write_operand(const NewValues& values, Stream stream) {
  if (values.of_operand == nullptr) return;
  convert_values(values.data, values.type, nullptr, values.of_operand, values.precision,
                 values.count, stream);
}

}  // namespace spmmbench
