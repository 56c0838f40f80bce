#pragma once
// Dense matrices in files: NumPy's .npy, and headerless little-endian .bin, row-major.

#include <cstdint>
#include <string>

#include "spmmbench/matrix.hpp"
#include "spmmbench/precision.hpp"

namespace spmmbench {

// 2-D, little-endian fp16, fp32 or fp64 (rounded to fp32; `fp64`: kept in values64 too), C or
// Fortran order. Throws Error for
// anything else and for a file that is not exactly as long as its header says.
DenseMatrix read_npy(const std::string& path, bool fp64 = false);

// The file must hold exactly rows * cols values of this type.
DenseMatrix read_bin(const std::string& path, std::int64_t rows, std::int64_t cols,
                     ElementType type = ElementType::f32, bool fp64 = false);

void write_npy(const std::string& path,
               const DenseMatrix& matrix);  // fp32, or fp64 where it has it; C order
void write_bin(const std::string& path, const DenseMatrix& matrix);

CsrMatrix to_csr(const DenseMatrix& matrix);  // the nonzeros; NaN is one
DenseMatrix to_dense(const CsrMatrix& matrix);

}  // namespace spmmbench
