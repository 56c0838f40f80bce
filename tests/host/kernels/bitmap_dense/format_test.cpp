#include "bitmap_dense/format.hpp"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>

#include "matrices.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::bitmap_dense {
namespace {

template <class Queues>
class BitmapQueuesOf : public ::testing::Test {};
using Kinds = ::testing::Types<PairQueues, ValueQueues>;
TYPED_TEST_SUITE(BitmapQueuesOf, Kinds);

using Panels = BitmapPanels;
constexpr std::int64_t kMostPositions = 1 << 24;  // larger shapes take seconds each

// Every panel cut into runs of `groups` groups of steps.
std::vector<Panels::Range> cut_groups(const CsrMatrix& matrix, int groups,
                                      ElementType type = ElementType::f16) {
  std::vector<Panels::Range> out;
  for (const Panels::Range& whole : Panels::whole_panels(matrix.rows, matrix.cols, type))
    for (int step = 0; step < whole.steps; step += groups * Panels::kGroupSteps)
      out.push_back(
          {whole.panel, step, std::min(whole.steps - step, groups * Panels::kGroupSteps)});
  return out;
}

// One row in 64 is full, all others are empty.
CsrMatrix lonely_rows(int rows, int cols) {
  std::vector<std::vector<std::int32_t>> lists(rows);
  for (int row = 5; row < rows; row += 64)
    for (int col = 0; col < cols; ++col) lists[row].push_back(col);
  return testing::from_rows(cols, lists);
}

std::vector<std::pair<std::string, CsrMatrix>> matrices() {
  auto out = testing::adversarial_matrices();
  out.emplace_back("full rows among empty ones", lonely_rows(130, 1000));
  std::vector<std::vector<std::int32_t>> half(200), full(65);
  for (int row = 0; row < 200; ++row)
    for (int col = 0; col < 777; ++col)
      if (hash_position(3, row, col) % 2 == 0) half[row].push_back(col);
  for (auto& row : full)
    for (int col = 0; col < 130; ++col) row.push_back(col);
  out.emplace_back("half full", testing::from_rows(777, half));
  out.emplace_back("full", testing::from_rows(130, full));
  std::erase_if(out, [](const auto& named) {
    return named.second.rows * named.second.cols > kMostPositions;
  });
  return out;
}

TYPED_TEST(BitmapQueuesOf, UnpackGivesBackTheMatrix) {
  using Queues = TypeParam;
  for (const auto& [name, drawn] : matrices())
    for (const Precision precision : {Precision::fp16, Precision::bf16, Precision::fp8_e4m3}) {
      const CsrMatrix matrix = testing::rounded(drawn, precision);
      for (const int groups : {1, 3, 1000}) {
        const Queues queues = Queues::build(matrix, storage_type(precision),
                                            cut_groups(matrix, groups, storage_type(precision)));
        EXPECT_TRUE(queues.unpack() == matrix) << name << " " << groups;
      }
    }
}

// Walks every segment as the kernel does: a unit is there once a step was flagged for it, and gone
// once a step was flagged as the last that needs it.
TYPED_TEST(BitmapQueuesOf, EveryWordIsReadWhileItsUnitIsInTheRing) {
  using Queues = TypeParam;
  for (const auto& [name, drawn] : matrices()) {
    const CsrMatrix matrix = testing::rounded(drawn, Precision::fp16);
    const Queues queues = Queues::build(matrix, ElementType::f16, cut_groups(matrix, 1000));
    for (const Panels::Segment& segment : queues.segments) {
      std::array<int, 32> level{};
      int announced = 0, released = 0;
      for (int step = 0; step < segment.steps; ++step) {
        const typename Queues::Block& block =
            queues.blocks[segment.first_block + step / Queues::kBlockSteps];
        const std::uint8_t* const over = block.hand_over;
        const int in_block = step % Queues::kBlockSteps;
        if (in_block == 0) {
          const auto old = level;
          for (int lane = 0; lane < 32; ++lane) level[lane] = old[over[lane] % Queues::kLanes];
        }
        announced += (over[in_block] & Queues::Block::kFlag) != 0;
        ASSERT_LE(announced - released, Queues::kRingUnits) << name;
        int least = segment.levels;
        for (int lane = 0; lane < 32; ++lane) {
          const auto bits =
              block.bits[in_block / Queues::kGroupSteps][lane][in_block % Queues::kGroupSteps];
          const int read = Queues::words_read(bits);
          if (read > 0) {
            ASSERT_GE(level[lane], released * Queues::kUnitLevels) << name;
          }
          ASSERT_LE(level[lane] + read, announced * Queues::kUnitLevels) << name;
          ASSERT_LE(level[lane] + read, segment.levels) << name;
          level[lane] += Queues::words_of(bits);
          least = std::min(least, level[lane]);
        }
        released += (over[Queues::kBlockSteps + in_block] & Queues::Block::kFlag) != 0;
        ASSERT_LE(released * Queues::kUnitLevels, least) << name;
      }
      EXPECT_EQ(announced, (segment.levels + Queues::kUnitLevels - 1) / Queues::kUnitLevels);
    }
  }
}

TYPED_TEST(BitmapQueuesOf, EvenlyDrawnZerosInLongSegmentsAreStoredWithUnderTwoPercentOfPadding) {
  using Queues = TypeParam;
  std::vector<std::vector<std::int32_t>> rows(16);
  // Nonzeros of what shares words: a pair, or a lane's positions in a fragment.
  std::map<std::array<int, 2>, int> sharing;
  for (int row = 0; row < 16; ++row)
    for (int col = 0; col < 16384; ++col)
      if (hash_position(5, row, col) % 10 < 3) {
        const bool pairs = Queues::kPairs;
        ++sharing[{pairs ? row : row % 8, pairs ? col / 2 : col / 16 * 4 + col % 8 / 2}];
        rows[row].push_back(col);
      }
  std::size_t words = 0;
  for (const auto& [place, values] : sharing) words += (values + 1) / 2;
  const CsrMatrix matrix = testing::rounded(testing::from_rows(16384, rows), Precision::fp16);
  const Queues queues = Queues::build(matrix, ElementType::f16, Queues::whole_panels(16, 16384));
  EXPECT_LT(queues.words.size(), 1.02 * static_cast<double>(words));
}

// So a lane never needs three words for four values.
TEST(BitmapValues, FourValuesBeginAWord) {
  for (const auto& [name, drawn] : matrices()) {
    const CsrMatrix matrix = testing::rounded(drawn, Precision::fp16);
    const ValueQueues queues =
        ValueQueues::build(matrix, ElementType::f16, cut_groups(matrix, 1000));
    for (const ValueQueues::Block& block : queues.blocks)
      for (const auto& group : block.bits)
        for (const auto& lane : group)
          for (std::uint32_t bits : lane)
            for (; bits != 0; bits >>= 8)
              if ((bits & 0xF0U) == 0xF0U) {
                ASSERT_EQ(std::popcount(bits & 15U) % 2, 0) << name;
              }
  }
}

TYPED_TEST(BitmapQueuesOf, AFullRowAmongEmptyOnesTakesNoMoreThanADenseMatrix) {
  using Queues = TypeParam;
  const CsrMatrix matrix = lonely_rows(64, 2048);
  const Queues queues = Queues::build(matrix, ElementType::f16, Queues::whole_panels(64, 2048));
  EXPECT_LE(queues.words.size(), std::size_t{64} * 1024);
}

TYPED_TEST(BitmapQueuesOf, TheThreadCountDoesNotChangeTheResult) {
  using Queues = TypeParam;
  const CsrMatrix matrix = testing::random_matrix(700, 1700, 300, 1, 11);
  const int threads = omp_get_max_threads();
  const auto ranges = cut_groups(matrix, 4);
  omp_set_num_threads(1);
  const Queues one = Queues::build(matrix, ElementType::bf16, ranges);
  omp_set_num_threads(7);
  const Queues seven = Queues::build(matrix, ElementType::bf16, ranges);
  omp_set_num_threads(threads);
  EXPECT_EQ(one.blocks, seven.blocks);
  EXPECT_EQ(one.words, seven.words);
  EXPECT_EQ(one.segments, seven.segments);
}

TYPED_TEST(BitmapQueuesOf, InspectCountsWhatIsBuilt) {
  using Queues = TypeParam;
  const CsrMatrix matrix = testing::random_matrix(300, 500, 100, 0, 3);
  const char* const name = Queues::kPairs ? "bitmap_queues" : "bitmap_values";
  const FormatStats shown = Registry<Format>::instance().at(name).analyze(matrix, {});
  EXPECT_EQ(shown.bytes, Queues::build(testing::rounded(matrix, Precision::fp16), ElementType::f16,
                                       Queues::whole_panels(300, 500))
                             .stats()
                             .bytes);
}

TYPED_TEST(BitmapQueuesOf, StatsCountBitsHandOversAndWords) {
  using Queues = TypeParam;
  const CsrMatrix matrix = lonely_rows(64, 256);
  const Queues queues = Queues::build(matrix, ElementType::f16, Queues::whole_panels(64, 256));
  const FormatStats stats = queues.stats();
  EXPECT_EQ(stats.tiles, 32);  // four panels of four steps, each a block of eight
  EXPECT_EQ(stats.windows, 4);
  EXPECT_EQ(stats.index_bytes, 4 * std::int64_t{sizeof(typename Queues::Block)} +
                                   4 * std::int64_t{sizeof(Panels::Segment)});
  EXPECT_EQ(stats.bytes, stats.index_bytes + 2 * stats.stored);
  EXPECT_DOUBLE_EQ(stats.fill, 1.0 / 128);
}

}  // namespace
}  // namespace spmmbench::bitmap_dense
