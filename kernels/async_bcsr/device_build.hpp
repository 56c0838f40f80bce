#pragma once
// BCSR and its groups built on the device: the same bytes as Bcsr::build and BcsrGroups::build. The
// groups come to the host without their steps.

#include <cstdint>

#include "async_bcsr/format.hpp"
#include "format/bcsr.hpp"
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

// Square blocks without groups, for others: BCSR as Bcsr::build gives it, or with `width` places
// for the blocks of each block row, -1 and zeros where it has fewer, and with the rows of blocks
// side by side as cuSPARSE's Blocked-ELL has them.
struct DeviceBcsr {
  BcsrPattern sizes;  // without arrays
  BcsrPattern::Totals totals;
  std::int64_t width = 0;
  Buffer block_row_ptr;  // of BCSR: int32
  Buffer block_col;      // int32
  Buffer values;         // in the type of A
};
DeviceBcsr build_bcsr(const DeviceCsr& a, int block, Device& device);
DeviceBcsr build_blocked_ell(const DeviceCsr& a, int block, Device& device);

// Whether what they need for a time is little. With small blocks of a large A it is far more than
// A.
bool pattern_fits(std::int64_t rows, std::int64_t cols, int block);
// What build_blocks needs for a time, at most.
std::size_t scratch_bytes(std::int64_t rows, std::int64_t cols, int bm, int bk);

// The blocks of bm x bk that hold an entry. Returns when it has counted.
std::int64_t count_blocks(const DeviceCsr& a, int bm, int bk);
// The most of them in a block row.
std::int64_t widest_block_row(const DeviceCsr& a, int bm, int bk);

}  // namespace spmmbench::async_bcsr
