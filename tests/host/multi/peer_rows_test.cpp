// Rows of B that ranks read where they lie; ranks are threads here, on the host.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpu/backend.hpp"
#include "matrices.hpp"
#include "multi/exchange.hpp"
#include "multi/peer_rows.hpp"
#include "process/temporary_folder.hpp"
#include "ranks.hpp"

namespace spmmbench {
namespace {

constexpr std::int64_t kPeerRows = 3000, kPeerColumns = 16;

float value_at(std::int64_t row, std::int64_t column, int round) {
  return static_cast<float>(row * kPeerColumns + column + round);
}

// Says in a line what a rank reads that is not B.
std::string read_on(int rank, const std::vector<Range>& ranges, const std::string& meeting) {
  Group group({rank, static_cast<int>(ranges.size()), rank, meeting}, 60);
  const auto device = open_host_device();
  Team team(group, *device, Split::peer);
  const DenseView like = make_b_view(kPeerRows, kPeerColumns, Layout::row_major, ElementType::f32);
  PeerRows rows(team, ranges, like);
  auto* const b = static_cast<float*>(rows.b().data);
  for (int round = 0; round < 2; ++round) {
    for (std::int64_t row = ranges[rank].begin; row < ranges[rank].end; ++row)
      for (std::int64_t column = 0; column < kPeerColumns; ++column)
        b[row * like.ld + column] = value_at(row, column, round);
    rows.meet();
    for (std::int64_t row = 0; row < kPeerRows; ++row)
      for (std::int64_t column = 0; column < kPeerColumns; ++column)
        if (b[row * like.ld + column] != value_at(row, column, round))
          return "row " + std::to_string(row) + " is another";
    rows.meet();
  }
  return {};
}

TEST(PeerRows, EveryRankReadsTheRowsOfAll) {
  for (const int ranks : {2, 3, 5}) {
    const TemporaryFolder folder;
    const auto faults = testing::faults_of_ranks(ranks, [&](int rank) {
      return read_on(rank, equal_ranges(kPeerRows, ranks), folder.file("meeting"));
    });
    EXPECT_EQ(faults, std::vector<std::string>(ranks));
  }
}

// Says in a line what a rank lacks of the rows that its part of `a` refers to.
std::string pull_on(int rank, int ranks, const CsrMatrix& a, const std::string& meeting) {
  Group group({rank, ranks, rank, meeting}, 60);
  const auto device = open_host_device();
  Team team(group, *device, Split::peer);
  const Gather gather = make_gather(split_rows(a, balanced_rows(a, ranks)), Way::pulled, rank);
  const DenseView like =
      make_b_view(gather.rows, kPeerColumns, Layout::row_major, ElementType::f32);
  PeerRows rows(team, gather, like);
  Exchange exchange(gather, Grid{ranks, 1}.same_columns(rank), ranks, like, *device,
                    team.transport(), &rows);
  auto* const b = static_cast<float*>(exchange.b().data);
  const auto at = [&](std::int64_t row, std::int64_t column) -> float& {
    return b[row * like.ld + column];
  };
  for (int round = 0; round < 2; ++round) {
    exchange.poison_received();
    for (std::int64_t row = gather.own.begin; row < gather.own.end; ++row)
      for (std::int64_t column = 0; column < kPeerColumns; ++column)
        at(row, column) = value_at(gather.original[row], column, round);
    exchange.launch();
    for (std::int64_t row = 0; row < gather.rows; ++row)
      for (std::int64_t column = 0; column < kPeerColumns && gather.original[row] >= 0; ++column)
        if (at(row, column) != value_at(gather.original[row], column, round))
          return "row " + std::to_string(row) + " is another";
    rows.meet();
  }
  return {};
}

TEST(PeerRows, EveryRankCopiesTheRowsThatItNeeds) {
  for (const int ranks : {2, 3, 5})
    for (const auto& [height, width] : {std::pair(200, 200), std::pair(90, 300)}) {
      const CsrMatrix a = testing::random_matrix(height, width, 6, 1, ranks);
      const TemporaryFolder folder;
      const auto faults = testing::faults_of_ranks(
          ranks, [&](int rank) { return pull_on(rank, ranks, a, folder.file("meeting")); });
      EXPECT_EQ(faults, std::vector<std::string>(ranks)) << height << " x " << width;
    }
}

}  // namespace
}  // namespace spmmbench
