#pragma once
// NumPy's .npy: a header that describes one array, and its bytes.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "spmmbench/matrix.hpp"

namespace spmmbench {

struct NpyArray {
  std::string type;  // as NumPy writes it: "<f4", "|S3", ...
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::string_view data;  // all bytes after the header
};

// Messages begin with `name`. Throws Error for data that are no .npy or are truncated.
NpyArray parse_npy(std::string_view file, const std::string& name);

// A 2-D array of little-endian fp16, fp32 or fp64 (rounded to fp32; `fp64`: kept in values64 too),
// C or Fortran order. Throws Error for anything else and for data that are not exactly as long as
// the shape says.
DenseMatrix parse_npy_matrix(std::string_view file, const std::string& name, bool fp64 = false);

}  // namespace spmmbench
