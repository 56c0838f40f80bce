#pragma once
// Mann-Whitney rank test of two series of times whose samples may depend on one another.

#include <span>
#include <vector>

namespace spmmbench {

// From 1; equal values share their mean rank.
std::vector<double> ranks_of(std::span<const double> values);

// How many independent samples tell as much as this series: n / (1 + 2 sum of the autocorrelations
// of its ranks), summed over pairs of lags (Geyer 1992, initial sequence) up to the first pair that
// is within its standard error without correlation, sqrt(2 / n): ten independent samples should
// count as ten. In [1, n].
double effective_size(std::span<const double> series);

struct RankTest {
  double greater = 0.5;  // P(other > base) + P(other = base) / 2, from all pairs
  double p = 1;          // one-sided: how likely `greater` is this large when the two are alike
};

// Is `other` larger than `base`? The p-value counts effective samples: exact distribution of U when
// neither side has more than 20 of them (ties not corrected, which errs to the larger p), else the
// normal approximation with tie and continuity correction. Neither series is empty.
RankTest rank_test(std::span<const double> base, std::span<const double> other,
                   double base_effective, double other_effective);

}  // namespace spmmbench
