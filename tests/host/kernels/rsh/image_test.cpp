#include "rsh/image.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <map>
#include <utility>

#include "matrices.hpp"

namespace spmmbench::rsh {
namespace {

float value_at(const unsigned char* at, ElementType type) {
  return static_cast<float>(load_element(type, at, 0));
}

using Entries = std::map<std::pair<std::int32_t, std::int32_t>, float>;

// All entries, each found the way a lane of the kernel finds it.
Entries decode(const RsImage& image, int window_rows, ElementType type) {
  Entries out;
  for (std::int64_t w = 0; w < image.windows(); ++w)
    for (std::int64_t tile = image.window_ptr[w]; tile < image.window_ptr[w + 1]; ++tile) {
      const auto* record = reinterpret_cast<const unsigned char*>(image.records.data()) +
                           std::size_t{image.record_ptr[tile]} * 16;
      for (int row = 0; row < window_rows; ++row)
        for (int column = 0; column < RsImage::kTileColumns; ++column) {
          std::uint32_t half[2];
          std::memcpy(half, record + (row / 8 * 4 + column / 8 * 2 + row % 8 / 4) * 8, sizeof half);
          const int bit = row % 4 * 8 + column % 8;
          if ((half[0] >> bit & 1U) == 0) continue;
          const int before = std::popcount(half[0] & ((1U << bit) - 1U));
          const std::size_t offset = half[1] + before * bytes_of(type);
          EXPECT_LE(std::size_t{image.record_ptr[tile]} * 16 + offset + bytes_of(type),
                    std::size_t{image.record_ptr[tile + 1]} * 16);
          const bool fresh = out.emplace(std::pair(image.row_ids[w * window_rows + row],
                                                   image.col_idx[tile * 16 + column]),
                                         value_at(record + offset, type))
                                 .second;
          EXPECT_TRUE(fresh);
        }
    }
  return out;
}

TEST(RsImage, EveryEntryOfTheWindowsIsFoundWithItsValue) {
  for (const auto& [name, matrix] : testing::adversarial_matrices())
    for (const char* window : {"8", "16", "32"})
      for (const ElementType type : kElementTypes) {
        SCOPED_TRACE(name + ", window " + window);
        CsrMatrix rounded = matrix;
        for (float& value : rounded.values) value = decode(type, encode(type, value));
        Options options;
        options.set("window", window);
        const RsTile format = RsTile::build(rounded, options);
        Entries expected;
        for (std::int64_t row = 0; row < rounded.rows; ++row)
          for (std::int64_t e = rounded.row_ptr[row]; e < rounded.row_ptr[row + 1]; ++e)
            if ((format.row_bits[row / 64] >> (row % 64) & 1) != 0)
              expected[{static_cast<std::int32_t>(row), rounded.col_idx[e]}] = rounded.values[e];
        EXPECT_EQ(decode(RsImage::build(format, type), format.window_rows, type), expected);
      }
}

}  // namespace
}  // namespace spmmbench::rsh
