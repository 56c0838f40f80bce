#pragma once
// Arrays of numbers in files to a dense fp32 matrix, whatever the file around them.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "spmmbench/matrix.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench {

// The type of the numbers in a file, little-endian: an element type, or fp64.
using StoredType = std::optional<ElementType>;
inline constexpr StoredType kDouble = std::nullopt;

constexpr std::size_t bytes_of(StoredType type) { return type ? bytes_of(*type) : sizeof(double); }
std::string_view to_string(StoredType type);

// Checks that a matrix can have so many rows and columns, and that memory suffices. Throws Error
// that begins with `name`.
void require_extent(const std::string& name, std::int64_t rows, std::int64_t cols);

// The same, and that there are exactly as many bytes as the values take.
void require_size(const std::string& name, std::int64_t rows, std::int64_t cols, StoredType type,
                  std::size_t data_bytes);

// Row by row, or column by column when `fortran_order`; fp64 is rounded. Calls require_size first.
DenseMatrix widen_values(const std::string& name, std::int64_t rows, std::int64_t cols,
                         StoredType type, std::string_view data, bool fortran_order = false);

}  // namespace spmmbench
