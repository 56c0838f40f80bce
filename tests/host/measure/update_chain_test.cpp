#include "measure/update_chain.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "verify/bound.hpp"

namespace spmmbench {
namespace {

UpdateChain chain_of(double alpha, double beta, double start) {
  return {{.alpha = alpha, .beta = beta},
          error_bound(KernelInfo(), Precision::fp32, ElementType::f32, {alpha, beta}),
          4,
          start};
}

TEST(UpdateChain, AnElementGoesFromLaunchToLaunch) {
  UpdateChain chain = chain_of(2, 0.5, 8);
  float stored = 8;
  for (int i = 1; i <= 100; ++i) {
    const double product = 1.0 / i;
    chain.launch({.sum = product, .magnitude = 3});
    stored = 2 * static_cast<float>(product) + 0.5F * stored;
    const ElementVerdict verdict = chain.judge(stored);
    EXPECT_LE(verdict.over_bound, 1);
    EXPECT_GT(chain.judge(stored * 1.001).over_bound, 1);
    EXPECT_TRUE(verdict.comparable);
  }
}

TEST(UpdateChain, NothingIsSaidOfWhatMayHaveOverflowed) {
  UpdateChain chain = chain_of(1, 2, 1);
  for (int i = 0; i < 120; ++i) chain.launch({.sum = 1, .magnitude = 1});
  EXPECT_TRUE(chain.judge(chain.value()).comparable);
  EXPECT_GT(chain.judge(std::numeric_limits<double>::infinity()).over_bound, 1);
  for (int i = 0; i < 10; ++i) chain.launch({.sum = 1, .magnitude = 1});
  EXPECT_FALSE(chain.judge(1).comparable);
}

}  // namespace
}  // namespace spmmbench
