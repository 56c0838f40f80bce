#pragma once
// A sparse matrix in the memory of a device.

#include <cstdint>

#include "spmmbench/precision.hpp"

namespace spmmbench {

// Compressed sparse rows, as CsrMatrix (matrix.hpp) describes them, in device memory. Not owning.
// The values have the type that they are multiplied in: storage_type(precision), rounded already.
struct DeviceCsr {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t nnz = 0;
  const std::int64_t* row_ptr = nullptr;  // rows + 1
  const std::int32_t* col_idx = nullptr;  // nnz
  const void* values = nullptr;           // nnz
  ElementType value_type = ElementType::f32;
  // The time of copying it to the device, if one copy serves several kernels. Each kernel that uses
  // the copy adds this time to its own stages.
  double upload_ms = 0;
  float scale = 1;  // an element is this times its value
  // It is also this times its block's, as CsrMatrix has them. Null: blocks have no scales.
  const float* block_scales = nullptr;
};

}  // namespace spmmbench
