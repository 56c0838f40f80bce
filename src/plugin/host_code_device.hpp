#pragma once
// A device for trying the host code of a plug-in for a GPU where there is none.

#include <memory>

#include "spmmbench/device.hpp"

namespace spmmbench {

// Says that it is a GPU of compute capability 9.0 and has its memory on the host, as that of a
// plug-in that is linked with spmmbench/cuda_on_host.c. Kernels are not run there.
std::unique_ptr<Device> open_host_code_device();

}  // namespace spmmbench
