#pragma once
// How a matrix of windows, cut into tiles of columns, becomes pieces of work. A span is a run of
// tiles that one warp multiplies for one feature tile. `team` consecutive spans are the work of one
// CTA.
//
//   windows of at most whole_tiles      stay whole: a span holds one or, up to about span_tiles,
//                                       several of them;
//   longer ones                         are cut evenly over the CTA's team (shared);
//   longer than team * part_tiles       over several CTAs as well (split), about split_tiles for
//                                       each of their warps.
//
// Shared and split windows come first, longest first, so that they do not finish last.

#include <cstdint>
#include <vector>

namespace spmmbench {

struct alignas(16) TileSpan {
  std::int32_t first_tile = 0;
  std::int32_t tiles = 0;         // 0 fills up the last CTA; kShared is added where it applies
  std::int32_t first_window = 0;  // the window of first_tile
  std::int32_t split = -1;        // index into `splits` of a split window

  static constexpr std::int32_t kShared = 1 << 30;
};

struct TileCut {
  static constexpr int kMaxSpanTiles = 32;

  int team = 1;
  int span_tiles = 8;
  int whole_tiles = 12;
  int part_tiles = 32;
  int split_tiles = 32;  // at most part_tiles
  bool operator==(const TileCut&) const = default;

  // The most tiles of a span of several windows.
  constexpr int longest_span() const {
    const int longest = span_tiles + span_tiles / 4;
    return longest < kMaxSpanTiles ? longest : kMaxSpanTiles;
  }
  // CTAs that share a window of more than whole_tiles.
  constexpr std::int64_t ctas_of(std::int64_t tiles) const {
    const std::int64_t cta_tiles = std::int64_t{team} * split_tiles;
    return tiles > std::int64_t{team} * part_tiles ? (tiles + cta_tiles - 1) / cta_tiles : 1;
  }
};

// The tiles of a matrix in windows.
struct WindowSizes {
  std::int64_t windows = 0, tiles = 0;
  std::int32_t longest = 0;  // tiles of a window
};
WindowSizes sizes_of(const std::vector<std::int32_t>& window_ptr);

// The CTAs that share a split window.
struct TileSplit {
  std::int32_t first_cta = 0;
  std::int32_t ctas = 0;
  bool operator==(const TileSplit&) const = default;
};

struct TileWork {
  std::vector<TileSpan> spans;    // a multiple of the team
  std::vector<TileSplit> splits;  // of CTAs 0, 1, 2 ..
};

// What a launch must know of work that need not be on the host.
struct WorkSize {
  std::int64_t spans = 0, splits = 0;
  std::int32_t split_ctas = 0;  // of all split windows
  std::int32_t most_ctas = 0;   // of one
  bool is_shared = false;       // a window is, by the warps of a CTA
  bool operator==(const WorkSize&) const = default;
};
WorkSize size_of(const TileWork& work);

// `window_ptr`: tiles before every window, and in all; every window has a tile. All of `cut` is at
// least 1, and no number of tiles exceeds kMaxSpanTiles.
TileWork cut_windows(const std::vector<std::int32_t>& window_ptr, const TileCut& cut);

}  // namespace spmmbench
