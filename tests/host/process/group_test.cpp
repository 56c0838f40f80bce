// Ranks that meet, exchange texts, and notice who is missing. Each is a thread here.

#include <gtest/gtest.h>

#include <cstdlib>
#include <latch>
#include <string>
#include <vector>

#include "process/group.hpp"
#include "process/temporary_folder.hpp"
#include "ranks.hpp"

namespace spmmbench {
namespace {

constexpr double kLong_s = 60, kShort_s = 0.3;

// What body(rank) throws on each rank, or nothing.
template <class Body>
std::vector<std::string> on_ranks(int ranks, const Body& body) {
  return testing::faults_of_ranks(ranks, [&](int rank) {
    body(rank);
    return std::string();
  });
}

TEST(Group, EveryRankGetsTheTextsOfAllInTheirOrder) {
  const TemporaryFolder folder;
  const std::string large(100'000, 'x');  // more than a socket holds
  const auto errors = on_ranks(4, [&](int rank) {
    Group group({rank, 4, rank, folder.file("meeting")}, kLong_s);
    for (int round = 0; round < 3; ++round) {
      const auto all = group.exchange(std::to_string(rank) + large);
      for (int other = 0; other < 4; ++other)
        if (all.at(other) != std::to_string(other) + large) throw Error("another text");
    }
    if (group.exchange(rank * 0.5) != std::vector{0.0, 0.5, 1.0, 1.5}) throw Error("numbers");
  });
  EXPECT_EQ(errors, std::vector<std::string>(4));
}

TEST(Group, ARankThatEndsIsNamedToAll) {
  const TemporaryFolder folder;
  const auto errors = on_ranks(3, [&](int rank) {
    Group group({rank, 3, rank, folder.file("meeting")}, kLong_s);
    group.exchange("");
    if (rank == 2) return;
    group.exchange("");
  });
  EXPECT_NE(errors[0].find("rank 2 on "), std::string::npos) << errors[0];
  EXPECT_NE(errors[0].find("its process ended"), std::string::npos) << errors[0];
  EXPECT_NE(errors[1].find("rank 0 on "), std::string::npos) << errors[1];
}

TEST(Group, ARankThatDoesNotAnswerIsNamed) {
  const TemporaryFolder folder;
  std::latch given_up(1);
  const auto errors = on_ranks(2, [&](int rank) {
    Group group({rank, 2, rank, folder.file("meeting")}, rank == 0 ? kShort_s : kLong_s);
    if (rank == 1) return given_up.wait();
    try {
      group.exchange("");
    } catch (const RankLost&) {
      given_up.count_down();
      throw;
    }
  });
  EXPECT_NE(errors[0].find("rank 1 on "), std::string::npos) << errors[0];
  EXPECT_NE(errors[0].find("no answer within 0.3 s"), std::string::npos) << errors[0];
}

TEST(Group, ARankThatDoesNotComeIsNamed) {
  const TemporaryFolder folder;
  const auto errors = on_ranks(1, [&](int) {
    const Group group({0, 2, 0, folder.file("meeting")}, kShort_s);
  });
  EXPECT_EQ(errors[0], "rank 1 did not come within 0.3 s");
}

TEST(Group, LaunchersTellTheRank) {
  EXPECT_FALSE(place_of_environment());
  setenv("RANK", "1", 1);
  setenv("WORLD_SIZE", "4", 1);
  setenv("MASTER_ADDR", "node7", 1);
  const auto place = place_of_environment();
  setenv("RANK", "4", 1);
  EXPECT_THROW(place_of_environment(), Error);
  setenv("RANK", "first", 1);
  EXPECT_THROW(place_of_environment(), Error);
  setenv("RANK", "1", 1);
  for (const char* port : {"http", "0", "80000"}) {
    setenv("MASTER_PORT", port, 1);
    EXPECT_THROW(place_of_environment(), Error) << port;
  }
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) unsetenv(name);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 1);
  EXPECT_EQ(place->ranks, 4);
  EXPECT_EQ(place->on_host, 1);
  EXPECT_EQ(place->meeting, "node7:29500");
}

}  // namespace
}  // namespace spmmbench
