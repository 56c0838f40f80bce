#include "gather_mma/format.hpp"

#include <gtest/gtest.h>
#include <omp.h>

#include <utility>

#include "matrices.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::gather_mma {
namespace {

using testing::drawn;

constexpr std::int64_t kMostElements = 1 << 24;  // larger shapes take seconds each

TEST(SlotStreams, UnpackGivesBackTheMatrix) {
  auto matrices = testing::adversarial_matrices();
  matrices.emplace_back("two chunks of columns", drawn(70, 5000, 10));
  matrices.emplace_back("full", drawn(65, 130, 100));
  for (const auto& [name, raw] : matrices) {
    if (raw.rows * raw.cols > kMostElements) continue;
    for (const Precision precision : {Precision::fp16, Precision::bf16, Precision::fp8_e4m3}) {
      const CsrMatrix matrix = testing::rounded(raw, precision);
      for (const int blocks : {1, 7})
        for (const int bands : {1, 3})
          for (const auto& [copies, second_part] : {std::pair{1, 1}, {2, 1}, {2, 2}})
            EXPECT_TRUE(SlotStreams::build(matrix, storage_type(precision),
                                           {.blocks = blocks,
                                            .warps = 4,
                                            .bands = bands,
                                            .copies = copies,
                                            .second_part = second_part})
                            .unpack() == matrix)
                << name << " " << blocks << " " << bands << " " << copies << " " << second_part;
    }
  }
}

// What a warp reads is one run of the stream, and every warp has the same share of its chunk.
TEST(SlotStreams, TheRangesOfAllWarpsCoverTheStreamInOrderAndEvenly) {
  constexpr int kBlocks = 7, kWarps = 4;
  const SlotStreams streams =
      SlotStreams::build(drawn(640, 9000, 12), ElementType::f16, {kBlocks, kWarps});
  ASSERT_EQ(streams.block_chunk.size(), kBlocks);
  ASSERT_EQ(streams.ranges.size(), kBlocks * kWarps);
  std::int64_t group = 0;
  std::int32_t piece = 0;
  for (std::size_t i = 0; i < streams.ranges.size(); ++i) {
    const SlotStreams::Range& range = streams.ranges[i];
    EXPECT_EQ(range.first_group, group);
    EXPECT_EQ(range.first_piece, piece);
    for (int p = 0; p < range.pieces; ++p, ++piece) {
      group += streams.pieces[piece].groups;
      EXPECT_EQ(streams.slices[streams.pieces[piece].slice].stream,
                streams.block_chunk[i / kWarps]);
    }
    EXPECT_EQ(range.groups, group - range.first_group);
    // Three chunks of the same size have 2, 2 and 3 blocks.
    EXPECT_LE(range.groups, 1 + streams.groups() / (3 * 2 * kWarps));
  }
  EXPECT_EQ(group, streams.groups());
}

TEST(SlotStreams, EveryChunkHasABlockEvenWhereThereAreMoreChunks) {
  const SlotStreams streams = SlotStreams::build(drawn(100, 9000, 12), ElementType::f16, {2, 4});
  EXPECT_EQ(streams.block_chunk, (std::vector<std::int32_t>{0, 1, 2}));
}

TEST(SlotStreams, EveryBandAndChunkHasABlockWithItsRows) {
  constexpr int kWarps = 4;
  const SlotStreams streams =
      SlotStreams::build(drawn(200, 6000, 12), ElementType::f16,
                         {.blocks = 6, .warps = kWarps, .bands = 3, .chunks = 2});
  EXPECT_EQ(streams.bands, 3);
  EXPECT_EQ(streams.band_rows, 67);
  EXPECT_EQ(streams.chunk_cols, 3000);
  EXPECT_EQ(streams.block_chunk, (std::vector<std::int32_t>{0, 1, 0, 1, 0, 1}));
  ASSERT_EQ(streams.ranges.size(), 6 * kWarps);
  for (std::size_t i = 0; i < streams.ranges.size(); ++i)
    for (int p = 0; p < streams.ranges[i].pieces; ++p) {
      const SlotStreams::Piece& piece = streams.pieces[streams.ranges[i].first_piece + p];
      const SlotStreams::Slice& slice = streams.slices[piece.slice];
      EXPECT_EQ(slice.stream, i / kWarps);
      for (const std::int32_t row : slice.rows)
        if (row >= 0) {
          EXPECT_EQ(row / streams.band_rows, slice.stream / streams.chunks);
        }
    }
}

// A block that has nearly all nonzeros takes longer than a second kernel.
TEST(SlotStreams, UnevenBandsBecomeOne) {
  std::vector<std::vector<int>> rows(64);
  for (int row = 0; row < 16; ++row)
    for (int col = 0; col < 4096; ++col) rows[row].push_back(col);
  const CsrMatrix matrix = testing::rounded(testing::from_rows(4096, rows), Precision::fp16);
  const SlotStreams streams =
      SlotStreams::build(matrix, ElementType::f16, {.blocks = 4, .warps = 4, .bands = 4});
  EXPECT_EQ(streams.bands, 1);
}

// The first mma of a step has rows 2s and 2s + 1 in octets 0 and 2, the second rows 2s + 8 and 2s +
// 9 in octets 1 and 3.
TEST(SlotStreams, EveryRowOfASliceHasATurnOfItsOwn) {
  for (int s = 0; s < SlotStreams::kQuadSteps; ++s)
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(SlotStreams::step_of(2 * s + i), s);
      EXPECT_EQ(SlotStreams::step_of(2 * s + i + 8), s);
      EXPECT_EQ(SlotStreams::octet_of(2 * s + i), 2 * i);
      EXPECT_EQ(SlotStreams::octet_of(2 * s + i + 8), 2 * i + 1);
    }
}

TEST(SlotStreams, ZerosStandBetweenNonzerosThatAreFartherApartThanAMove) {
  // Slot 3: columns 3, 2035 = 3 + 8 * 254 and, by three moves, 4091.
  const CsrMatrix matrix =
      testing::rounded(testing::from_rows(4096, {{3, 2035, 4091}, {4091}}), Precision::fp16);
  const SlotStreams streams = SlotStreams::build(matrix, ElementType::f16, {});
  EXPECT_EQ(streams.groups(), 1);
  EXPECT_TRUE(streams.unpack() == matrix);
}

TEST(SlotStreams, RandomNonzerosFillTheSlotsOfARowAlmostEvenly) {
  // The longest of 8 slots is 1.42 deviations above the mean of 51 nonzeros, and ends a group.
  const CsrMatrix matrix = drawn(512, 4096, 10);
  const SlotStreams streams = SlotStreams::build(matrix, ElementType::f16, {});
  EXPECT_LT(static_cast<double>(streams.stats().stored), 1.24 * static_cast<double>(matrix.nnz()));
}

TEST(SlotStreams, WithTwoCopiesOfBTheSlotsOfARowAreAboutAsLong) {
  const CsrMatrix matrix = drawn(512, 4096, 10);
  const SlotStreams streams = SlotStreams::build(matrix, ElementType::f16, {.copies = 2});
  EXPECT_LT(static_cast<double>(streams.stats().stored), 1.07 * static_cast<double>(matrix.nnz()));
  EXPECT_TRUE(streams.unpack() == testing::rounded(matrix, Precision::fp16));
}

TEST(SlotStreams, HalfOfASecondCopyEvensMostOfTheSlots) {
  const CsrMatrix matrix = drawn(512, 4096, 30);
  const auto stored = [&](int copies, int second_part) {
    const SlotStreams::Cut cut{.copies = copies, .second_part = second_part};
    const SlotStreams streams = SlotStreams::build(matrix, ElementType::f16, cut);
    return static_cast<double>(streams.stats().stored) / static_cast<double>(matrix.nnz());
  };
  EXPECT_GT(stored(1, 1), 1.10);
  EXPECT_LT(stored(2, 2), 1.05);
}

TEST(SlotStreams, TheSecondCopyHasEveryColumnInAnotherSlot) {
  constexpr std::int32_t kCols = 104;  // of a chunk
  for (int column = 0; column < kCols; ++column) {
    const int line = column / SlotStreams::kOctet, slot = column % SlotStreams::kOctet;
    const int second = SlotStreams::Turns::second_slot(slot, SlotStreams::Turns::turn_of(column));
    EXPECT_EQ(SlotStreams::column_at(kCols, line, slot), column);
    EXPECT_EQ(SlotStreams::column_at(kCols, SlotStreams::lines(kCols) + line, second), column);
  }
}

TEST(SlotStreams, TheThreadCountDoesNotChangeTheResult) {
  const CsrMatrix matrix =
      testing::rounded(testing::random_matrix(700, 5700, 300, 1, 11), Precision::bf16);
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  const SlotStreams one = SlotStreams::build(matrix, ElementType::bf16, {3, 2});
  omp_set_num_threads(7);
  const SlotStreams seven = SlotStreams::build(matrix, ElementType::bf16, {3, 2});
  omp_set_num_threads(threads);
  EXPECT_EQ(one.slices, seven.slices);
  EXPECT_EQ(one.words, seven.words);
  EXPECT_EQ(one.starts, seven.starts);
}

TEST(SlotStreams, InspectCountsWhatIsBuilt) {
  const CsrMatrix matrix = drawn(300, 500, 20);
  const SlotStreams streams = SlotStreams::build(matrix, ElementType::f16, {});
  const FormatStats shown = Registry<Format>::instance().at("slot_streams").analyze(matrix, {});
  EXPECT_EQ(shown.bytes, streams.stats().bytes);
  EXPECT_EQ(shown.bytes, static_cast<std::int64_t>(streams.words.size() * 4));
  EXPECT_EQ(shown.index_bytes, shown.stored);
}

}  // namespace
}  // namespace spmmbench::gather_mma
