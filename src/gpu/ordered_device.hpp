#pragma once
// A GPU whose memory is used by launches on streams of callers.

#include <functional>
#include <memory>

#include "spmmbench/device.hpp"

namespace spmmbench {

// As open_cuda_device of backend.hpp. `in_order` is asked when memory that was freed while launches
// may use it is allocated: true where all of them come, on the device, before what follows, which
// then need not be waited for.
std::unique_ptr<Device> open_cuda_device(int index, const std::function<bool()>& in_order);

}  // namespace spmmbench
