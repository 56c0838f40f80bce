#pragma once
// Sliced ELLPACK, as cuSPARSE has it, built on the device from CSR.

#include <cstdint>

#include "spmmbench/device.hpp"
#include "spmmbench/device_csr.hpp"

namespace spmmbench::cusparse_sell {

inline constexpr int kSliceRows = 32;  // one for each lane of a warp

// Rows of a slice are as long as its longest one; entry i of all of them, then entry i + 1.
struct DeviceSlices {
  std::int64_t stored = 0;  // entries, padding included
  Buffer offset;            // int32, of each slice's entries, and their number
  Buffer col_idx;           // int32; -1: padding
  Buffer values;            // in the type of A; 0 in the padding
};

// The entries that the slices store. Returns when it has counted.
std::int64_t count_entries(const DeviceCsr& a);
// At most 2^31 - 1 of them. Returns when all is there. Throws DeviceError.
DeviceSlices build_slices(const DeviceCsr& a, Device& device);

}  // namespace spmmbench::cusparse_sell
