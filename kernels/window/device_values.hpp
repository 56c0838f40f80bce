#pragma once
// Other values in WCSR, in place.

#include <cstdint>

#include "spmmbench/device.hpp"
#include "spmmbench/replacing.hpp"
#include "window/device_build.hpp"

namespace spmmbench {

// The lines of WCSR that hold entries, in the order of the matrix. A line is a row of a tile, and
// its entries lie side by side in the matrix.
struct WcsrLines {
  Buffer memory;                           // of the others
  std::int64_t count = 0;                  // of lines
  const std::uint32_t* lines = nullptr;    // which they are: tile * window_rows + row of the window
  const std::uint32_t* entries = nullptr;  // the first one, and the end
  const std::uint16_t* columns = nullptr;  // a bit for each column of the tile with an entry
};

// Finds the lines of `wcsr`, built from `csr` with this row order; columns of `csr` ascend. Throws
// Error for 2^32 stored values and more. Returns when the lines are there.
WcsrLines find_wcsr_lines(const DeviceCsr& csr, const DeviceWcsr& wcsr, const std::int32_t* row_of,
                          Device& device);
// Takes other values, and writes them into the operand where `values` says so. Enqueues one kernel
// on `stream`. It waits for its predecessor and lets no successor in early, which may read values
// before it waits itself.
void replace_wcsr_values(const NewValues& values, const WcsrLines& lines, const DeviceWcsr& wcsr,
                         Stream stream);

}  // namespace spmmbench
