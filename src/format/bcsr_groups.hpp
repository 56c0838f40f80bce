#pragma once
// The walk of a kernel over BCSR: unit rows of 64 matrix rows are taken `height` at a time, and a
// group steps through the union of its unit rows' columns, so that a tile of B is fetched once for
// all unit rows that have a block there.

#include <cstdint>
#include <vector>

#include "format/bcsr.hpp"

namespace spmmbench {

struct BcsrStep {
  static constexpr int kMaxHeight = 3;
  std::int32_t k = 0;                             // first column of A, first row of B
  std::int32_t a_row[kMaxHeight] = {-1, -1, -1};  // row in the stacked blocks; -1: no block
};
static_assert(sizeof(BcsrStep) == 16, "read by the device as one 16-byte load");

enum class BcsrGrouping {
  consecutive,
  overlap,  // each heaviest unit row left takes the rows that share most of its columns
};

struct BcsrGroups {
  static constexpr int kUnitRows = 64;  // the m of wgmma

  int height = 2;
  std::vector<std::int32_t>
      unit_row;  // groups() * height; matrix rows from 64 * unit_row; -1: none
  std::vector<std::int32_t> step_ptr = {0};  // groups() + 1
  std::vector<BcsrStep> steps;               // k ascending within a group

  // `unit_k` columns per step, a divisor of pattern.bk; pattern.bm is a multiple of 64. Groups come
  // in descending number of steps.
  static BcsrGroups build(const BcsrPattern& pattern, int height, int unit_k,
                          BcsrGrouping grouping);

  std::int64_t groups() const { return static_cast<std::int64_t>(step_ptr.size()) - 1; }
  std::int64_t blocks(std::int64_t group) const;  // unit blocks over all of its steps
};

}  // namespace spmmbench
