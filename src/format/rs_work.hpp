#pragma once
// How the windows of an RS-Tile matrix are cut into pieces of work. A span is what one warp does
// for one strip of features: a run of tiles. `team` consecutive spans are one block's.
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

struct alignas(16) RsSpan {
  std::int32_t first_tile = 0;
  std::int32_t tiles = 0;         // 0 fills up the last block; kShared is added where it applies
  std::int32_t first_window = 0;  // the window of first_tile
  std::int32_t part = -1;         // index into `parts` of a split window's span

  static constexpr std::int32_t kShared = 1 << 30;
};

// One block's share of a split window.
struct RsPart {
  std::int32_t first = 0;  // index of the window's first part
  std::int32_t count = 1;  // parts of the window
};

struct RsCut {
  static constexpr int kMaxSpanTiles = 16;  // a span's share of the format fits shared memory

  int team = 1;
  int span_tiles = 8;  // to aim at: a span may exceed it by a quarter
  int whole_tiles = 12;
  int part_tiles = 16;
  bool operator==(const RsCut&) const = default;
};

struct RsWork {
  std::vector<RsSpan> spans;  // a multiple of the team
  std::vector<RsPart> parts;
};

// `tiles_before`: tiles before every window, and in all; every window has a tile. All of `cut` is
// at least 1, and no number of tiles exceeds kMaxSpanTiles. No span has more than that either.
RsWork cut_rs_windows(const std::vector<std::int32_t>& tiles_before, const RsCut& cut);

}  // namespace spmmbench
