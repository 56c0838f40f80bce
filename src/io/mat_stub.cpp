#include <fmt/format.h>

#include "io/mat.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {

CsrMatrix read_mat(const std::string& path, bool) {
  throw Error(
      fmt::format("{}: expected a program that was built with libmatio-dev, to read .mat", path));
}

}  // namespace spmmbench
