#include "core/transpose.hpp"

#include <gtest/gtest.h>

#include "matrices.hpp"

namespace spmmbench {
namespace {

TEST(Transpose, HasTheEntriesByColumnAndKnowsWhichTheyWere) {
  const CsrMatrix a{2, 3, {0, 2, 4}, {0, 2, 0, 1}, {1, 2, 3, 4}};
  std::vector<std::int64_t> source;
  EXPECT_EQ(transpose(a, &source), (CsrMatrix{3, 2, {0, 2, 3, 4}, {0, 1, 1, 0}, {1, 3, 4, 2}}));
  EXPECT_EQ(source, (std::vector<std::int64_t>{0, 2, 3, 1}));
}

TEST(Transpose, TwiceIsTheMatrix) {
  for (CsrMatrix a : {testing::shuffled_grid(16), testing::hub_graph(100), CsrMatrix{}}) {
    a.values64.assign(a.values.begin(), a.values.end());
    EXPECT_EQ(transpose(transpose(a)), a);
  }
}

}  // namespace
}  // namespace spmmbench
