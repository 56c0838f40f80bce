#pragma once
// A with its zeros stored, for kernels that multiply it as a dense matrix.

#include "spmmbench/device.hpp"
#include "spmmbench/kernel.hpp"
#include "spmmbench/problem.hpp"
#include "spmmbench/stage_timer.hpp"

namespace spmmbench {

// The shape that upload_dense takes.
DenseView dense_shape(const SparseOperand& a);

// Refuses an A that takes more than a quarter of the device with its zeros. Otherwise says the
// bytes that upload_dense needs, the CSR arrays included where they are not on the device.
Support supports_dense(const SparseOperand& a, const DeviceInfo& device);

// Row-major, as `shape` says (its data is not used), elements rounded as they are in `a`. A copy of
// the CSR arrays is freed when it returns. Stage "upload". Synchronises; throws DeviceError.
Buffer upload_dense(const SparseOperand& a, const DenseView& shape, Device& device,
                    StageTimer& stages);

}  // namespace spmmbench
