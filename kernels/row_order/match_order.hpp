#pragma once
// The row order `match` (src/reorder/match.cpp) on the device. It is the same as the host's.

#include <cstdint>

#include "reorder/match.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/device_csr.hpp"

namespace spmmbench {

// Whether match_order can take it: less than 2^31 - 1 nonzeros, and few empty rows and columns
// (match::is_filled), since its tables have an entry for each.
bool can_match(std::int64_t rows, std::int64_t cols, std::int64_t nnz);

// What match_order takes on the way, in bytes.
std::int64_t match_bytes(std::int64_t rows, std::int64_t cols, std::int64_t nnz);

// order[i] is the row that stands at position i: an int32 for each row; null: natural, as
// match::Sample says. Returns when the order is there. Throws DeviceError.
Buffer match_order(const DeviceCsr& a, match::Height height, Device& device);

}  // namespace spmmbench
