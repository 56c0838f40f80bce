#include "format/gap_streams.hpp"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>

#include "matrices.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

using Gaps = GapStreams;
// Every panel cut into runs of `slots` slots.
std::vector<Gaps::Range> cut_slots(const CsrMatrix& matrix, int slots) {
  std::vector<Gaps::Range> out;
  for (const Gaps::Range& whole : Gaps::whole_panels(matrix.rows, matrix.cols))
    for (int slot = 0; slot < whole.slots; slot += slots)
      out.push_back({whole.panel, slot, std::min(whole.slots - slot, slots)});
  return out;
}

// One in `kept` of 64 x 4096 positions, at random.
CsrMatrix one_in(int kept) {
  std::vector<std::vector<std::int32_t>> rows(64);
  for (int row = 0; row < 64; ++row)
    for (int col = 0; col < 4096; ++col)
      if (hash_position(5, row, col) % kept == 0) rows[row].push_back(col);
  return testing::rounded(testing::from_rows(4096, rows), Precision::fp16);
}

std::vector<std::pair<std::string, CsrMatrix>> spread_matrices() {
  auto out = testing::adversarial_matrices();
  out.emplace_back("half full", one_in(2));
  std::vector<std::vector<std::int32_t>> full(65), column(130);
  for (auto& row : full)
    for (int col = 0; col < 130; ++col) row.push_back(col);
  for (auto& row : column) row = {17, 900};
  out.emplace_back("full", testing::from_rows(130, full));
  out.emplace_back("two full columns", testing::from_rows(1000, column));
  std::erase_if(out, [](const auto& named) {
    constexpr std::int64_t kMostPositions = 1 << 24;  // larger shapes take seconds each
    return named.second.rows * named.second.cols > kMostPositions;
  });
  return out;
}

TEST(GapStreams, UnpackGivesBackTheMatrix) {
  for (const auto& [name, drawn] : spread_matrices())
    for (const auto& [precision, slots] :
         {std::pair(Precision::fp16, 1), std::pair(Precision::fp16, 100000),
          std::pair(Precision::bf16, 3)}) {
      const CsrMatrix matrix = testing::rounded(drawn, precision);
      const Gaps streams = Gaps::build(matrix, storage_type(precision), cut_slots(matrix, slots));
      EXPECT_TRUE(streams.unpack() == matrix) << name << " " << slots;
    }
}

// Walks every segment as the kernel does, whose ring has room for the slot that is multiplied next
// and two more.
TEST(GapStreams, EveryEntryGoesToAnOpenSlot) {
  for (const auto& [name, drawn] : spread_matrices()) {
    const CsrMatrix matrix = testing::rounded(drawn, Precision::fp16);
    const Gaps streams = Gaps::build(matrix, ElementType::f16, cut_slots(matrix, 40));
    for (const Gaps::Segment& segment : streams.segments) {
      std::vector<int> word(Gaps::kLanes * Gaps::kHalves);
      int done = 0;
      for (std::int64_t group = segment.first_group; done < segment.slots; ++group) {
        ASSERT_LT(group, segment.first_group + segment.groups) << name;
        for (int batch = 0; batch < Gaps::kGroupBatches && done < segment.slots; ++batch) {
          for (std::size_t s = 0; s < word.size(); ++s) {
            const std::uint32_t code = streams.groups[group].gaps[s / 2][batch];
            for (int i = 0; i < Gaps::kBatch; ++i) {
              word[s] += static_cast<int>(code >> (8 * i + 4 * (s % 2)) & Gaps::kMostGap);
              ASSERT_GE(word[s], done * Gaps::kSlotWords) << name;
              ASSERT_LT(word[s], (done + Gaps::kOpenSlots) * Gaps::kSlotWords) << name;
              ASSERT_LT(word[s], segment.slots * Gaps::kSlotWords) << name;
            }
          }
          done += static_cast<int>(streams.ends[group] >> (8 * batch) & 0xFFU);
        }
      }
      EXPECT_EQ(done, segment.slots) << name;
    }
  }
}

TEST(GapStreams, RandomZerosTakeFewEntriesBesidesTheNonzeros) {
  const auto stored_per_nonzero = [](int kept) {
    const CsrMatrix matrix = one_in(kept);
    return Gaps::build(matrix, ElementType::f16, Gaps::whole_panels(matrix.rows, matrix.cols))
        .stats()
        .extra.at("stored_per_nnz");
  };
  EXPECT_LT(stored_per_nonzero(2), 1.08);
  EXPECT_LT(stored_per_nonzero(4), 1.25);
  EXPECT_LT(stored_per_nonzero(10), 1.7);
}

TEST(GapStreams, TheThreadCountDoesNotChangeTheResult) {
  const CsrMatrix matrix = testing::random_matrix(700, 1700, 300, 1, 11);
  const int threads = omp_get_max_threads();
  const auto ranges = cut_slots(matrix, 4);
  omp_set_num_threads(1);
  const Gaps one = Gaps::build(matrix, ElementType::bf16, ranges);
  omp_set_num_threads(7);
  const Gaps seven = Gaps::build(matrix, ElementType::bf16, ranges);
  omp_set_num_threads(threads);
  EXPECT_TRUE(one.groups == seven.groups);
  EXPECT_EQ(one.ends, seven.ends);
  EXPECT_EQ(one.segments, seven.segments);
}

TEST(GapStreams, InspectCountsWhatIsBuilt) {
  const CsrMatrix matrix = testing::random_matrix(300, 500, 100, 0, 3);
  const FormatStats shown = Registry<Format>::instance().at("gap_streams").analyze(matrix, {});
  EXPECT_EQ(shown.bytes, Gaps::build(testing::rounded(matrix, Precision::fp16), ElementType::f16,
                                     Gaps::whole_panels(300, 500))
                             .stats()
                             .bytes);
}

TEST(GapStreams, StatsCountGroups) {
  const CsrMatrix matrix = testing::rounded(testing::from_rows(32, {{0}}), Precision::fp16);
  const Gaps streams = Gaps::build(matrix, ElementType::f16, Gaps::whole_panels(1, 32));
  const FormatStats stats = streams.stats();
  EXPECT_EQ(stats.tiles, 1);
  EXPECT_EQ(stats.windows, 1);
  EXPECT_EQ(stats.bytes, static_cast<std::int64_t>(sizeof(Gaps::Group) + sizeof(std::uint32_t) +
                                                   sizeof(Gaps::Segment)));
  EXPECT_EQ(stats.index_bytes, stats.bytes - 2 * stats.stored);
  EXPECT_DOUBLE_EQ(stats.fill, 1.0 / 2048);
}

}  // namespace
}  // namespace spmmbench
