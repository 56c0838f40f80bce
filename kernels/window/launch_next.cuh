#pragma once
// Small kernels that follow one another: the CTAs of each are there when the one before ends, which
// saves some 1 us of each.

#include "common/dependent_launch.hpp"
#include "ptx/griddepcontrol.cuh"
#include "spmmbench/device.hpp"

namespace spmmbench {

// Such a kernel begins with this.
__device__ inline void follow_previous() {
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
}

template <class... Parameters, class... Values>
void launch_next(void (*kernel)(Parameters...), unsigned ctas, int threads,
                 std::size_t shared_bytes, Stream stream, const Values&... values) {
  launch_dependent(kernel, dim3(ctas), dim3(static_cast<unsigned>(threads)), shared_bytes, stream,
                   kernels_wait(), values...);
}

}  // namespace spmmbench
