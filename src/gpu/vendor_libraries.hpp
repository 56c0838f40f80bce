#pragma once
// cuBLAS and cuSPARSE, in the major version that their headers have.

#include "core/shared_library.hpp"

namespace spmmbench {

const SharedLibrary& cublas_library();
const SharedLibrary& cusparse_library();

}  // namespace spmmbench
