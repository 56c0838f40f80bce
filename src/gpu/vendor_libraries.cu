#include "gpu/vendor_libraries.hpp"

#include <cublas_v2.h>
#include <cusparse.h>
#include <fmt/format.h>

#include <array>
#include <string>

namespace spmmbench {
namespace {

// The version of cuBLAS or cuSPARSE, by the function that both have. Empty where the library is
// missing.
std::string library_version(const SharedLibrary& library, const char* query_name) {
  using Query = int(libraryPropertyType, int*);
  auto* const query = reinterpret_cast<Query*>(library.find(query_name));
  if (query == nullptr) return {};
  std::array<int, 3> part{};
  for (int i = 0; i < 3; ++i) (void)query(static_cast<libraryPropertyType>(i), &part[i]);
  return fmt::format("{}.{}.{}", part[0], part[1], part[2]);
}

}  // namespace

const SharedLibrary& cublas_library() {
  static const SharedLibrary library("libcublas.so." + std::to_string(CUBLAS_VER_MAJOR));
  return library;
}

const SharedLibrary& cusparse_library() {
  static const SharedLibrary library("libcusparse.so." + std::to_string(CUSPARSE_VER_MAJOR));
  return library;
}

void name_libraries(DeviceInfo& device) {
  if (device.kind != DeviceKind::cuda) return;
  if (device.cusparse_version.empty())
    device.cusparse_version = library_version(cusparse_library(), "cusparseGetProperty");
  if (device.cublas_version.empty())
    device.cublas_version = library_version(cublas_library(), "cublasGetProperty");
}

}  // namespace spmmbench
