#pragma once
// What row orders by length need of the device. The results are those of the host.

#include <cstdint>

#include "spmmbench/device.hpp"
#include "spmmbench/device_csr.hpp"

namespace spmmbench {

// The order `degree` (src/reorder/degree.cpp): an int32 for each row. Enqueues on the stream of the
// device. Throws Error where a row has 2^31 nonzeros or more.
Buffer degree_order(const DeviceCsr& a, Device& device);

// Rows with nonzeros in the order `order` (a null buffer: as they come), and the others, ascending:
// what leave_out_empty_rows gives (src/format/wcsr.hpp).
struct DeviceNonemptyRows {
  Buffer rows, empty;  // int32
  std::int64_t count = 0, empty_count = 0;
};
DeviceNonemptyRows split_empty_rows(const DeviceCsr& a, const Buffer& order, Device& device);

// to[i] = from[places[i]], int32: the row of C of each place.
Buffer rows_at_places(const std::int32_t* from, const Buffer& places, std::int64_t count,
                      Device& device);

// The row pointers of these rows, ascending ones without which A has no nonzeros, and the end.
Buffer row_pointers_at(const DeviceCsr& a, const Buffer& rows, std::int64_t count, Device& device);

}  // namespace spmmbench
