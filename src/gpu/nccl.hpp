#pragma once
// The transport over NCCL, which is loaded when this first needs it.

#include <memory>
#include <string>

#include "core/shared_library.hpp"
#include "gpu/transport.hpp"
#include "spmmbench/device.hpp"

namespace spmmbench {

// Says why NCCL cannot be used: it is missing or too old. Empty where it can.
std::string why_no_nccl();
// Why this library does not serve as NCCL.
std::string why_no_nccl(const SharedLibrary& library);

// What rank 0 makes and all ranks are given.
std::string new_nccl_id();

// Returns when all ranks have called it. NVLink multicast stays off. `device` outlives the
// transport. Throws DeviceError.
std::unique_ptr<Transport> open_nccl(const std::string& id, int rank, int ranks, Device& device);

}  // namespace spmmbench
