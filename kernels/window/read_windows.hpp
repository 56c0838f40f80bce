#pragma once
// Columns of A's windows, copied from the device for those who say how a row is added up. A copy
// takes some 10 us whatever it brings, so that those of a thousand windows are gathered first.

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gpu/copy_lines.hpp"
#include "spmmbench/device.hpp"
#include "window/stage.cuh"
#include "window/sum_order.hpp"

namespace spmmbench::window {

// The arrays of A in windows, on the device.
struct WindowArrays {
  const std::int32_t* window_ptr;  // the first tile of each window, and the end
  const std::int32_t* col_idx;     // kTileColumns of each tile
  std::int64_t windows;
};

class ReadWindows {
 public:
  // Copies these windows at once; the last of them may be left out where they are large, and all
  // where memory is short.
  void read(std::vector<std::int32_t> wanted, const WindowArrays& a, Device& device) {
    try {
      gather(std::move(wanted), a, device);
    } catch (const OutOfMemory&) {
      windows_.clear();
    }
  }

  // One that was not copied is copied to `alone`, and is good as long as that.
  WindowOfRow get(std::int32_t window, const WindowArrays& a, Device& device,
                  std::vector<std::int32_t>& alone) const {
    const auto found = std::ranges::lower_bound(windows_, window, {}, &Window::index);
    if (found != windows_.end() && found->index == window)
      return {std::span(columns_).subspan(found->at, found->tiles * kTileColumns), window,
              found->first_tile};
    std::int32_t tiles[2];
    device.download(tiles, a.window_ptr + window, sizeof tiles);
    alone.resize((tiles[1] - tiles[0]) * kTileColumns);
    device.download(alone.data(), a.col_idx + std::int64_t{tiles[0]} * kTileColumns,
                    alone.size() * sizeof(std::int32_t));
    return {alone, window, tiles[0]};
  }

 private:
  void gather(std::vector<std::int32_t> wanted, const WindowArrays& a, Device& device) {
    constexpr std::size_t kMostTiles = std::size_t{1} << 18;  // 16 MiB of columns
    constexpr std::size_t kTileBytes = kTileColumns * sizeof(std::int32_t);
    std::ranges::sort(wanted);
    wanted.erase(std::ranges::unique(wanted).begin(), wanted.end());
    windows_.clear();
    if (wanted.empty()) return;
    std::vector<std::int32_t> first_tiles(a.windows + 1);
    device.download(first_tiles.data(), a.window_ptr, first_tiles.size() * sizeof(std::int32_t));
    std::vector<std::int32_t> tiles;
    for (const std::int32_t window : wanted) {
      const std::int32_t first = first_tiles[window], end = first_tiles[window + 1];
      if (tiles.size() + (end - first) > kMostTiles) break;
      windows_.push_back({window, first, end - first, tiles.size() * kTileColumns});
      for (std::int32_t tile = first; tile < end; ++tile) tiles.push_back(tile);
    }
    columns_.resize(tiles.size() * kTileColumns);
    if (tiles.empty()) return;
    const Buffer lines = device.upload(tiles),
                 gathered = device.allocate(tiles.size() * kTileBytes);
    cuda_copy_lines(a.col_idx, lines.as<std::int32_t>(), std::ssize(tiles), kTileBytes,
                    gathered.data(), CopyBeside::nothing, device.stream());
    device.download(columns_.data(), gathered.data(), gathered.bytes());
  }

  struct Window {
    std::int32_t index, first_tile, tiles;
    std::size_t at;  // its first column in columns_
  };
  std::vector<Window> windows_;        // by index
  std::vector<std::int32_t> columns_;  // of all of them
};

}  // namespace spmmbench::window
