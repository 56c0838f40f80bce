#pragma once
// A with its zeros stored, for kernels that multiply it as a dense matrix.

#include "spmmbench/device.hpp"
#include "spmmbench/matrix.hpp"

namespace spmmbench {

// Row-major, as `shape` says (its data is not used), elements rounded as they are in `a`. The CSR
// arrays are on the device only meanwhile. Synchronises; throws DeviceError.
Buffer upload_dense(const CsrMatrix& a, const DenseView& shape, Device& device);

}  // namespace spmmbench
