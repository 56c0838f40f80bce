#include "format/slot_streams.hpp"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>

#include "matrices.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

constexpr std::int64_t kMostElements = 1 << 24;  // larger shapes take seconds each

// `percent` of the positions, drawn at random.
CsrMatrix drawn(int rows, int cols, unsigned percent) {
  std::vector<std::vector<std::int32_t>> lists(rows);
  for (int row = 0; row < rows; ++row)
    for (int col = 0; col < cols; ++col)
      if (hash_position(3, row, col) % 100 < percent) lists[row].push_back(col);
  return testing::rounded(testing::from_rows(cols, lists), Precision::fp16);
}

TEST(SlotStreams, UnpackGivesBackTheMatrix) {
  auto matrices = testing::adversarial_matrices();
  matrices.emplace_back("two chunks of columns", drawn(70, 5000, 10));
  matrices.emplace_back("full", drawn(65, 130, 100));
  for (const auto& [name, raw] : matrices) {
    if (raw.rows * raw.cols > kMostElements) continue;
    for (const Precision precision : {Precision::fp16, Precision::bf16}) {
      const CsrMatrix matrix = testing::rounded(raw, precision);
      for (const int blocks : {1, 7})
        EXPECT_TRUE(SlotStreams::build(matrix, storage_type(precision), blocks, 4).unpack() ==
                    matrix)
            << name << " " << blocks;
    }
  }
}

// What a warp reads is one run of the stream, and every warp of a launch has the same share.
TEST(SlotStreams, TheRangesOfAllWarpsCoverTheStreamInOrderAndEvenly) {
  const SlotStreams streams = SlotStreams::build(drawn(640, 9000, 12), ElementType::f16, 5, 4);
  ASSERT_EQ(streams.phase_ptr.size(), 6U);
  ASSERT_EQ(streams.ranges.size(), streams.phase_chunk.size() * 4);
  std::int64_t quad = 0;
  std::int32_t piece = 0;
  for (std::size_t i = 0; i < streams.ranges.size(); ++i) {
    const SlotStreams::Range& range = streams.ranges[i];
    EXPECT_EQ(range.first_quad, quad);
    EXPECT_EQ(range.first_piece, piece);
    for (int p = 0; p < range.pieces; ++p, ++piece) {
      quad += streams.pieces[piece].quads;
      EXPECT_EQ(streams.slices[streams.pieces[piece].slice].chunk, streams.phase_chunk[i / 4]);
    }
  }
  EXPECT_EQ(quad, streams.quads());
  for (int block = 0; block < 5; ++block) {
    const std::size_t first = streams.phase_ptr[block] * std::size_t{4};
    const std::size_t last = streams.phase_ptr[block + 1] * std::size_t{4};
    const std::int64_t end =
        last < streams.ranges.size() ? streams.ranges[last].first_quad : streams.quads();
    EXPECT_NEAR(static_cast<double>(end - streams.ranges[first].first_quad),
                static_cast<double>(streams.quads()) / 5, 1);
  }
}

TEST(SlotStreams, NinetyPercentZerosNeedFewZerosBetweenAndFewTurnsOfTheBanks) {
  const CsrMatrix matrix = drawn(512, 4096, 10);
  const SlotStreams streams = SlotStreams::build(matrix, ElementType::f16, 1, 1);
  EXPECT_LT(static_cast<double>(streams.stats().stored), 1.04 * static_cast<double>(matrix.nnz()));
  // In the order of the columns, 8 rows of B would take 2.9 turns.
  EXPECT_LT(8.0 * static_cast<double>(streams.bank_turns),
            1.7 * static_cast<double>(streams.stats().stored));
}

TEST(SlotStreams, TheThreadCountDoesNotChangeTheResult) {
  const CsrMatrix matrix =
      testing::rounded(testing::random_matrix(700, 5700, 300, 1, 11), Precision::bf16);
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  const SlotStreams one = SlotStreams::build(matrix, ElementType::bf16, 3, 2);
  omp_set_num_threads(7);
  const SlotStreams seven = SlotStreams::build(matrix, ElementType::bf16, 3, 2);
  omp_set_num_threads(threads);
  EXPECT_EQ(one.slices, seven.slices);
  EXPECT_EQ(one.words, seven.words);
  EXPECT_EQ(one.starts, seven.starts);
  EXPECT_EQ(one.bank_turns, seven.bank_turns);
}

TEST(SlotStreams, InspectCountsWhatIsBuilt) {
  const CsrMatrix matrix = drawn(300, 500, 20);
  const SlotStreams streams = SlotStreams::build(matrix, ElementType::f16, 1, 1);
  const FormatStats shown = Registry<Format>::instance().at("slot_streams").analyze(matrix, {});
  EXPECT_EQ(shown.bytes, streams.stats().bytes);
  EXPECT_EQ(shown.stored,
            static_cast<std::int64_t>(streams.words.size() / SlotStreams::kQuadWords) *
                SlotStreams::kQuadSteps * SlotStreams::kSlots);
  EXPECT_EQ(shown.index_bytes,
            shown.stored + static_cast<std::int64_t>(streams.slices.size()) * 64);
}

}  // namespace
}  // namespace spmmbench
