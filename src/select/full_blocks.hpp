#pragma once
// Up to which share of gathered columns blocks are counted.

namespace spmmbench {

// A column of a window of 32 rows has 1 / gathered_32 nonzeros on average, so 128 x 64 blocks,
// which also have columns without any, are no fuller than 1 / (32 gathered_32). Above this share of
// gathered_32 that is less than 0.072 (docs/decisions/selection-model.md). Blocks that turn out to
// be worth multiplying are about half as full.
inline constexpr double kMostGatheredOfBlocks = 1 / (32 * 0.072);

}  // namespace spmmbench
