#pragma once
// MATLAB's .mat of versions 5 and 7, and of 7.3 where libmatio was built with HDF5. The library
// is loaded when a file is first read.

#include <string>

#include "spmmbench/matrix.hpp"

namespace spmmbench {

// Field A of the struct Problem, as SuiteSparse saves it, else the one sparse matrix of the file.
// Values of every real type, rounded to fp32; `fp64`: values64 too. Throws Error for a file without
// such a matrix, with several, or with a complex one, for what is truncated or corrupt, and without
// libmatio.
CsrMatrix read_mat(const std::string& path, bool fp64 = false);

}  // namespace spmmbench
