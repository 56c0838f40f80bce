#pragma once
// How a WCSR matrix is cut into pieces of work. A span is what one warp does for one strip of
// features: a run of tiles. `team` consecutive spans are one block's.
//
//   windows of at most whole_tiles      stay whole: a span holds one or, up to about span_tiles,
//                                       several of them;
//   longer ones                         are cut evenly over the block's team (shared);
//   longer than team * part_tiles       over several blocks as well (split).
//
// Shared and split windows come first, longest first, so that they do not finish last.

#include <cstdint>
#include <vector>

namespace spmmbench {

struct alignas(16) WcsrSpan {
  std::int32_t first_tile = 0;
  std::int32_t tiles = 0;         // 0 fills up the last block; kShared is added where it applies
  std::int32_t first_window = 0;  // the window of first_tile
  std::int32_t split = -1;        // index into `splits` of a split window

  static constexpr std::int32_t kShared = 1 << 30;
};

struct WcsrCut {
  static constexpr int kMaxSpanTiles = 32;

  int team = 1;
  int span_tiles = 8;
  int whole_tiles = 12;
  int part_tiles = 32;
  bool operator==(const WcsrCut&) const = default;
};

struct WcsrWork {
  std::vector<WcsrSpan> spans;       // a multiple of the team
  std::vector<std::int32_t> splits;  // blocks that share each split window
};

// `window_ptr` as in Wcsr: ascending, every window has a tile. All of `cut` is at least 1, and no
// number of tiles exceeds kMaxSpanTiles.
WcsrWork cut_windows(const std::vector<std::int32_t>& window_ptr, const WcsrCut& cut);

}  // namespace spmmbench
