#pragma once
// Weights in 2:4 on the device: the same bytes as TwoFour::build.

#include <cstdint>
#include <optional>

#include "format/two_four.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/device_csr.hpp"

namespace spmmbench::two_four {

// What the function of that name says of a matrix on the host. Returns when it has counted.
std::optional<std::int64_t> first_row_beyond_two_of_four(const DeviceCsr& a);

// TwoFour::blocks, with values of 16 bits. Returns when they are there. Throws Unsupported where
// the matrix is not in 2:4.
Buffer build_blocks(const DeviceCsr& a, Device& device);

}  // namespace spmmbench::two_four
