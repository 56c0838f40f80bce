#pragma once
// cuBLAS and cuSPARSE, in the major version that their headers have.

#include "core/shared_library.hpp"
#include "spmmbench/device.hpp"

namespace spmmbench {

const SharedLibrary& cublas_library();
const SharedLibrary& cusparse_library();

// Fills in the versions that a CUDA device's information lacks. Both libraries are loaded for it,
// which takes 70 ms in a process that has not loaded them (H200), so what needs no version does not
// ask. Empty where a library is missing.
void name_libraries(DeviceInfo& device);

}  // namespace spmmbench
