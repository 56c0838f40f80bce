#pragma once
// How a WCSR matrix is cut into pieces of work. A span is what one warp does for one strip of
// features: a run of tiles. `team` consecutive spans are one block's, and
//
//   windows of at most 1.5 * span_tiles tiles   stay whole: a span holds one or several of them;
//   longer ones                                 are cut evenly over the block's team (shared);
//   longer than team * kMaxSpanTiles            over several blocks as well (split).
//
// Shared and split windows come first, longest first, so that they do not finish last.

#include <cstdint>
#include <vector>

namespace spmmbench {

struct alignas(16) WcsrSpan {
  std::int32_t first_tile = 0;
  std::int32_t tiles = 0;         // 0 fills up the last block; kShared is added where it applies
  std::int32_t first_window = 0;  // the window of first_tile
  std::int32_t part = -1;         // index into `parts` of a split window's span

  static constexpr std::int32_t kShared = 1 << 30;
};

// One block's share of a split window.
struct WcsrPart {
  std::int32_t first = 0;  // index of the window's first part
  std::int32_t count = 1;  // parts of the window
};

struct WcsrWork {
  static constexpr int kMaxSpanTiles = 32;

  int team = 1;
  std::vector<WcsrSpan> spans;  // a multiple of team
  std::vector<WcsrPart> parts;

  std::int64_t blocks() const { return static_cast<std::int64_t>(spans.size()) / team; }
};

// `window_ptr` as in Wcsr: ascending, every window has a tile. team and span_tiles >= 1, span_tiles
// <= kMaxSpanTiles * 2 / 3.
WcsrWork cut_windows(const std::vector<std::int32_t>& window_ptr, int team, int span_tiles);

}  // namespace spmmbench
