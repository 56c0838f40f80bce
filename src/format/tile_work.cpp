#include "format/tile_work.hpp"

#include <algorithm>

namespace spmmbench {
namespace {

struct LongWindow {
  std::int32_t window = 0;
  std::int32_t tiles = 0;
};

void cut_long_window(const LongWindow& window, std::int32_t first_tile, const TileCut& cut,
                     TileWork& out) {
  const std::int64_t tiles = window.tiles;
  const std::int64_t ctas = cut.ctas_of(tiles);
  const std::int32_t split = ctas == 1 ? -1 : static_cast<std::int32_t>(out.splits.size());
  if (ctas > 1)
    out.splits.push_back(
        {static_cast<std::int32_t>(out.spans.size()) / cut.team, static_cast<std::int32_t>(ctas)});
  for (std::int64_t cta = 0; cta < ctas; ++cta) {
    for (int i = 0; i < cut.team; ++i) {
      const std::int64_t spans = ctas * cut.team, span = cta * cut.team + i;
      const std::int64_t from = tiles * span / spans, to = tiles * (span + 1) / spans;
      out.spans.push_back({static_cast<std::int32_t>(first_tile + from),
                           static_cast<std::int32_t>(to - from) | TileSpan::kShared, window.window,
                           split});
    }
  }
}

}  // namespace

TileWork cut_windows(const std::vector<std::int32_t>& window_ptr, const TileCut& cut) {
  TileWork out;
  const std::int32_t longest_span = cut.longest_span();
  std::vector<LongWindow> long_windows;
  const auto windows = static_cast<std::int32_t>(window_ptr.size()) - 1;
  for (std::int32_t w = 0; w < windows; ++w) {
    const std::int32_t tiles = window_ptr[w + 1] - window_ptr[w];
    if (tiles > cut.whole_tiles) [[unlikely]]
      long_windows.push_back({w, tiles});
  }
  std::stable_sort(long_windows.begin(), long_windows.end(),
                   [](const LongWindow& a, const LongWindow& b) { return a.tiles > b.tiles; });
  for (const LongWindow& window : long_windows)
    cut_long_window(window, window_ptr[window.window], cut, out);

  // The open span is written at every window, and kept where it ends: lengths of windows vary, so
  // branches on them would be mispredicted.
  std::size_t count = out.spans.size();
  out.spans.resize(count + windows + 1);
  std::int32_t first = 0, begin = 0, at = 0;  // its first window and tile, and its end
  for (std::int32_t w = 0; w < windows; ++w) {
    const std::int32_t end = window_ptr[w + 1];
    const bool is_long = end - at > cut.whole_tiles;
    const bool closes = is_long | (at - begin >= cut.span_tiles) | (end - begin > longest_span);
    out.spans[count] = {begin, at - begin, first, -1};
    count += closes & (first < w) ? 1 : 0;
    first = closes ? w + (is_long ? 1 : 0) : first;
    begin = is_long ? end : closes ? at : begin;
    at = end;
  }
  out.spans[count] = {begin, at - begin, first, -1};
  count += first < windows ? 1 : 0;
  out.spans.resize(count);
  while (out.spans.size() % cut.team != 0) out.spans.emplace_back();
  return out;
}

WindowSizes sizes_of(const std::vector<std::int32_t>& window_ptr) {
  WindowSizes out{std::ssize(window_ptr) - 1, window_ptr.back(), 0};
  for (std::int64_t w = 0; w < out.windows; ++w)
    out.longest = std::max(out.longest, window_ptr[w + 1] - window_ptr[w]);
  return out;
}

WorkSize size_of(const TileWork& work) {
  WorkSize out;
  out.spans = std::ssize(work.spans);
  out.splits = std::ssize(work.splits);
  if (out.splits > 0) {
    out.split_ctas = work.splits.back().first_cta + work.splits.back().ctas;
    out.most_ctas = work.splits.front().ctas;  // the longest is first
  }
  out.is_shared = out.spans > 0 && (work.spans.front().tiles & TileSpan::kShared) != 0;
  return out;
}

}  // namespace spmmbench
