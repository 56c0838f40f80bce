#pragma once

#include "spmmbench/device.hpp"
#include "spmmbench/device_csr.hpp"
#include "spmmbench/matrix.hpp"

namespace spmmbench {

// A as CSR on the host, of what the device has. Throws DeviceError.
CsrMatrix download(const DeviceCsr& a, Device& device);

}  // namespace spmmbench
