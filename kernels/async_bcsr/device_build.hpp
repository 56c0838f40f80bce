#pragma once
// BCSR and its groups built on the device: the same bytes as Bcsr::build and BcsrGroups::build. To
// the host come the groups without their steps.

#include <cstdint>

#include "format/bcsr.hpp"
#include "format/bcsr_groups.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/device_csr.hpp"

namespace spmmbench::async_bcsr {

struct DeviceBlocks {
  BcsrPattern sizes;  // without arrays
  BcsrPattern::Totals totals;
  BcsrGroupIndex groups;
  Buffer values;  // of all blocks, as Bcsr has them, in the type of A; at least one block of zeros
  Buffer steps;   // of all groups and, behind them, the same in reverse order
};

// Blocks of bm x bk, and groups of steps of `unit_k` columns, as BcsrGroups::build takes them; at
// most 2^31 - 1 rows of stacked blocks. Returns when all is there. Throws DeviceError.
DeviceBlocks build_blocks(const DeviceCsr& a, int bm, int bk, int unit_k, BcsrGrouping grouping,
                          Device& device);

// What build_blocks needs for a time, at most.
std::size_t scratch_bytes(std::int64_t rows, std::int64_t cols, int bm, int bk);

// The blocks of bm x bk that hold an entry. Returns when it has counted.
std::int64_t count_blocks(const DeviceCsr& a, int bm, int bk);

}  // namespace spmmbench::async_bcsr
