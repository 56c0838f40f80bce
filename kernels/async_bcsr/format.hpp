#pragma once
// The order in which a kernel walks BCSR. Unit rows of 64 matrix rows are taken two at a time. Such
// a group steps through the union of the columns of its unit rows, so that a tile of B is fetched
// once where both have a block.

#include <cstdint>
#include <vector>

#include "format/bcsr.hpp"

namespace spmmbench::async_bcsr {

struct alignas(16) BcsrStep {
  static constexpr int kHeight = 2;
  std::int32_t k = 0;                      // first column of A, first row of B
  std::int32_t a_row[kHeight] = {-1, -1};  // row in the stacked blocks; -1: no block
  std::int32_t a_column = 0;               // column in them
};
static_assert(sizeof(BcsrStep) == 16, "read by the device as one 16-byte load");

enum class BcsrGrouping {
  consecutive,
  overlap,  // the heaviest remaining unit row is paired with the one that shares most of its
            // columns
};

// The groups, without their steps.
struct BcsrGroupIndex {
  static constexpr int kUnitRows = 64;  // the m of wgmma
  static constexpr int kHeight = BcsrStep::kHeight;

  // groups() * kHeight; matrix rows from 64 * unit_row; -1: none.
  std::vector<std::int32_t> unit_row;
  std::vector<std::int32_t> step_ptr = {0};  // groups() + 1
  std::vector<std::int32_t> block_count;     // of each group: unit blocks over all of its steps

  std::int64_t groups() const { return static_cast<std::int64_t>(step_ptr.size()) - 1; }
  std::int64_t steps_of(std::int64_t group) const { return step_ptr[group + 1] - step_ptr[group]; }
  std::int64_t blocks(std::int64_t group) const { return block_count[group]; }
};

struct BcsrGroups : BcsrGroupIndex {
  // k ascending within a group. A group without blocks has one step without a block, so that its
  // part of C is written.
  std::vector<BcsrStep> steps;

  // `unit_k` columns per step, a divisor of pattern.bk; pattern.bm is a multiple of 64. Groups come
  // in descending number of steps.
  static BcsrGroups build(const BcsrPattern& pattern, int unit_k, BcsrGrouping grouping);

  // Unit rows, the longest first, that one is compared with to find its partner.
  static std::int64_t candidates(std::int64_t unit_rows);
};

}  // namespace spmmbench::async_bcsr
