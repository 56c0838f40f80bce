#pragma once

#include "spmmbench/device.hpp"

namespace spmmbench {

// Copies a dense matrix on the device to the same matrix in the other layout. `overlap`: as in
// common/dependent_launch.hpp.
void transpose(const DenseView& from, const DenseView& to, bool overlap, Stream stream);

}  // namespace spmmbench
