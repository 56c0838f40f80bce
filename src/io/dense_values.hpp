#pragma once
// Little-endian arrays of numbers in files to a dense matrix, whatever the file around them.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "spmmbench/matrix.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench {

// Checks that a matrix can have this many rows and columns, and that memory suffices. Throws Error
// that begins with `name`.
void require_extent(const std::string& name, std::int64_t rows, std::int64_t cols);

// The same, and that there are exactly as many bytes as the values take.
void require_size(const std::string& name, std::int64_t rows, std::int64_t cols, ElementType type,
                  std::size_t data_bytes);

// Row by row, or column by column when `fortran_order`. fp64 is rounded, and kept in values64 where
// `fp64`. Calls require_size first.
DenseMatrix widen_values(const std::string& name, std::int64_t rows, std::int64_t cols,
                         ElementType type, std::string_view data, bool fp64,
                         bool fortran_order = false);

}  // namespace spmmbench
