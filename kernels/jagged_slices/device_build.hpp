#pragma once
// Slices built on the device: the same bytes as JaggedSlices::build and pack. Nothing but a few
// counts comes to the host.

#include <cstdint>

#include "common/empty_rows.hpp"
#include "jagged_slices/format.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/device_csr.hpp"
#include "spmmbench/replacing.hpp"

namespace spmmbench::jagged {

struct DeviceSlices {
  JaggedShape shape;
  std::int64_t count = 0, parts = 0, long_row_count = 0;
  std::int64_t row_count = 0;  // of all slices
  Buffer index;                // the memory of these, with room for more:
  JaggedSlices::Slice* slices = nullptr;
  std::uint16_t* row_lengths = nullptr;
  std::int32_t* row_ids = nullptr;
  std::int32_t* part_of = nullptr;
  JaggedSlices::LongRow* long_rows = nullptr;
  std::int32_t* first_columns = nullptr;  // null unless entries of 16 bits were to be packed
  Buffer entries;                         // the memory of these:
  std::uint32_t* packed = nullptr;        // likewise
  std::int32_t* col_idx = nullptr;        // null, like `values`, where all entries are packed
  void* values = nullptr;
  Buffer rows;      // RowOfPlace of every place of a slice, for replace_values and write_back
  EmptyRows empty;  // that no slice has
};

// `row_order`, of `row_count` rows, and `row_ids`: int32 on the device, or null, as in
// JaggedSlices::build. `packs`: as in pack, for values of 8 or 16 bits. Returns when all is there.
// Throws DeviceError.
DeviceSlices build_slices(const DeviceCsr& a, const std::int32_t* row_order, std::int64_t row_count,
                          const std::int32_t* row_ids, const JaggedShape& shape, bool packs,
                          Device& device);

// Takes other values of the same A; the operand keeps the old ones, and so does `values` for packed
// slices, which have theirs in `packed`. Enqueues one kernel on `stream`. It waits for its
// predecessor and lets no successor in early, which may read entries before it waits itself.
void replace_values(const NewValues& values, const DeviceSlices& slices, Stream stream);
// Writes the values of the slices, which are of this type, into A's array.
void write_back(const DeviceSlices& slices, void* a_values, ElementType type, Stream stream);

// The nonzeros of the longest row.
std::int64_t longest_row(const DeviceCsr& a, Device& device);

}  // namespace spmmbench::jagged
