#pragma once

#include <cstdint>

#include "spmmbench/device.hpp"
#include "spmmbench/device_csr.hpp"

namespace spmmbench::jagged {

// gathered_sector_share (jagged_slices/gathered_sectors.hpp) of a matrix and a row order on the
// device, null for the natural one. Two counts come to the host.
double gathered_sector_share(const DeviceCsr& a, const std::int32_t* row_order,
                             std::int64_t rows_of_sector, Device& device);

}  // namespace spmmbench::jagged
