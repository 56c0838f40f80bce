#pragma once
// `run --interleave`: the kernels of a matrix are measured in turns, each with a share of its
// samples, so that a clock that drifts moves them all.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "run/options.hpp"
#include "spmmbench/result.hpp"

namespace spmmbench {

// A choice: each turn prepares A anew, and a drift of minutes is spread over as many.
inline constexpr int kTurns = 4;

// The protocol of one turn: the caps of sampling are divided among the turns.
Protocol of_turn(Protocol whole);

// The order of this many kernels in a turn: a permutation that depends on seed and turn alone.
std::vector<std::size_t> order_of_turn(std::size_t kernels, std::uint64_t seed, int turn);

// One row of what a case gave in its turns: the samples of all of them, the stages of the one that
// prepared in the least time, the largest error. A turn that is not ok is the row. `turns` is not
// empty.
ResultRow join_turns(std::vector<ResultRow> turns);

}  // namespace spmmbench
