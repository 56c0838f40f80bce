#include "gpu/vendor_libraries.hpp"

#include <cublas_v2.h>
#include <cusparse.h>

#include <string>

namespace spmmbench {

const SharedLibrary& cublas_library() {
  static const SharedLibrary library("libcublas.so." + std::to_string(CUBLAS_VER_MAJOR));
  return library;
}

const SharedLibrary& cusparse_library() {
  static const SharedLibrary library("libcusparse.so." + std::to_string(CUSPARSE_VER_MAJOR));
  return library;
}

}  // namespace spmmbench
