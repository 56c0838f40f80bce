#include "process/deadline.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

TEST(DeadlineDeathTest, EndsAProcessThatDoesNotWithItsLine) {
  EXPECT_EXIT(
      {
        set_deadline(0.01, "rank 1 on host: does not answer");
        for (;;) pause();
      },
      ::testing::ExitedWithCode(static_cast<int>(ExitCode::some_failed)),
      "^spmmbench: rank 1 on host: does not answer\n$");
}

TEST(Deadline, IsTheLastOneThatWasSetUntilItIsCancelled) {
  set_deadline(500, "the first");
  set_deadline(1000, "the second");
  const unsigned left_s = alarm(1000);
  EXPECT_GT(left_s, 500U);
  cancel_deadline();
  EXPECT_EQ(alarm(0), 0U);
}

}  // namespace
}  // namespace spmmbench
