#pragma once
// Gap slices built on the device: the same bytes as GapSlices::build. A few counts come to the
// host, and the first group of each slice: slices are dealt to blocks there.

#include <cstdint>
#include <span>

#include "gap_slices/format.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/device_csr.hpp"

namespace spmmbench::gap_slices {

struct DeviceSlices {
  GapSlices index;  // slice_ptr, block_ptr, slice_warps and ranges; the other arrays are empty
  Buffer words, slice_ptr, block_ptr, slice_warps, ranges, starts, slice_rows;
};

// As GapSlices::count. Returns when it has counted.
GapSlices::Counts count(const DeviceCsr& a);

// As GapSlices::build; `a` has values of shape.value_bits. `row_ids`: of C, for the rows of A, or
// none. Returns when all is there. Throws DeviceError.
DeviceSlices build_slices(const DeviceCsr& a, std::span<const std::int32_t> row_ids,
                          const GapSlices::Shape& shape, int blocks, int warps, Device& device);

}  // namespace spmmbench::gap_slices
