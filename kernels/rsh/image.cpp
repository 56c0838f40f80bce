#include "rsh/image.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "core/parallel.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench::rsh {
namespace {

// One tile's blocks, in the order of the record.
struct Tile {
  static constexpr int kMostBlocks = RsRecord<32>::kHalves / 2;
  std::array<std::uint64_t, kMostBlocks> bits = {};
  std::array<std::uint32_t, kMostBlocks> first = {};  // value of the format
  std::uint32_t values = 0;
};

int header_bytes(int blocks) { return blocks * RsRecord<8>::kValues / 2; }

// `pair`: of groups of `window`; `value`: the tile's first.
Tile tile_of(const RsTile& matrix, std::int64_t window, std::int64_t pair, std::uint32_t value) {
  const int height = matrix.blocks_per_group();
  const std::int64_t group = matrix.windows[window].group + 2 * pair;
  Tile out;
  for (int k = 0; k < 2 && group + k < matrix.windows[window + 1].group; ++k)
    for (int h = 0; h < height; ++h) {
      const int i = 2 * h + k;
      out.bits[i] = matrix.bitmap[(group + k) * height + h];
      out.first[i] = value + out.values;
      out.values += static_cast<std::uint32_t>(std::popcount(out.bits[i]));
    }
  return out;
}

void write_values(const float* from, int count, ElementType type, unsigned char* to) {
  visit_element(type, [=](auto element) {
    for (int i = 0; i < count; ++i) {
      const auto bits = element.encode(from[i]);
      std::memcpy(to + i * sizeof bits, &bits, sizeof bits);
    }
  });
}

void write_record(const Tile& tile, int blocks, const std::vector<float>& values, ElementType type,
                  unsigned char* to) {
  auto offset = static_cast<std::uint32_t>(header_bytes(blocks));
  for (int i = 0; i < blocks; ++i) {
    const std::uint64_t bits = tile.bits[i];
    write_values(values.data() + tile.first[i], std::popcount(bits), type, to + offset);
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t pair[2] = {static_cast<std::uint32_t>(bits >> (32 * half)), offset};
      std::memcpy(to + (2 * i + half) * sizeof pair, pair, sizeof pair);
      offset += static_cast<std::uint32_t>(std::popcount(pair[0]) * bytes_of(type));
    }
  }
}

}  // namespace

RsImage RsImage::build(const RsTile& matrix, ElementType value_type) {
  static_assert(std::endian::native == std::endian::little);
  const int blocks = 2 * matrix.blocks_per_group();
  const auto value_bytes = static_cast<std::int64_t>(bytes_of(value_type));
  const std::int64_t windows = matrix.window_count();
  RsImage out;
  out.window_ptr.assign(windows + 1, 0);
  for (std::int64_t w = 0; w < windows; ++w)
    out.window_ptr[w + 1] =
        out.window_ptr[w] + (matrix.windows[w + 1].group - matrix.windows[w].group + 1) / 2;
  const std::int64_t tiles = out.tiles();
  out.col_idx.assign(tiles * kTileColumns, kPadding);
  out.row_ids.assign(windows * matrix.window_rows, kPadding);

  // visit(tile, window, pair) for the tiles of window w, in order.
  const auto for_each_tile = [&](std::int64_t w, auto&& visit) {
    std::uint32_t value = matrix.windows[w].value;
    for (std::int32_t t = out.window_ptr[w]; t < out.window_ptr[w + 1]; ++t) {
      const Tile tile = tile_of(matrix, w, t - out.window_ptr[w], value);
      visit(tile, t);
      value += tile.values;
    }
  };
  std::vector<std::uint32_t> pieces(tiles);
#pragma omp parallel for schedule(dynamic, 256)
  for (std::int64_t w = 0; w < windows; ++w)
    for_each_tile(w, [&](const Tile& tile, std::int32_t t) {
      pieces[t] =
          static_cast<std::uint32_t>((header_bytes(blocks) + tile.values * value_bytes + 15) / 16);
    });
  std::uint64_t total = 0;
  out.record_ptr.assign(tiles + 1, 0);
  for (std::int64_t t = 0; t < tiles; ++t) {
    total += pieces[t];
    out.record_ptr[t + 1] = static_cast<std::uint32_t>(total);
  }
  if (total > std::numeric_limits<std::uint32_t>::max())
    throw Error(
        fmt::format("RS-Tile: {} pieces of 16 bytes in its records, at most 2^32 - 1", total));
  out.records.assign(total * 4, 0);
  ExceptionTrap trap;
#pragma omp parallel for schedule(dynamic, 256)
  for (std::int64_t w = 0; w < windows; ++w)
    trap.run([&] {
      const std::vector<std::int32_t> rows = matrix.rows_of(w);
      std::copy(rows.begin(), rows.end(), out.row_ids.begin() + w * matrix.window_rows);
      std::copy(matrix.col_id.begin() + matrix.windows[w].column,
                matrix.col_id.begin() + matrix.windows[w + 1].column,
                out.col_idx.begin() + std::int64_t{out.window_ptr[w]} * kTileColumns);
      for_each_tile(w, [&](const Tile& tile, std::int32_t t) {
        write_record(tile, blocks, matrix.values, value_type,
                     reinterpret_cast<unsigned char*>(out.records.data()) +
                         std::size_t{out.record_ptr[t]} * 16);
      });
    });
  trap.rethrow();
  return out;
}

}  // namespace spmmbench::rsh
