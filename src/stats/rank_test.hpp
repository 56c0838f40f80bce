#pragma once
// Mann-Whitney rank test, and how much a series of dependent samples tells.

#include <span>

namespace spmmbench {

// How many independent samples tell as much as this series: n / (1 + 2 sum of the autocorrelations
// of its ranks), summed over pairs of lags (Geyer 1992, initial sequence) up to the first pair that
// is within its standard error without correlation, sqrt(2 / n): ten independent samples should
// count as ten. In [1, n].
double effective_size(std::span<const double> series);

struct RankTest {
  double greater = 0.5;  // P(other > base) + P(other = base) / 2, from all pairs
  double p = 1;          // one-sided: how likely `greater` is this large when the two are alike
};

// Is `other` larger than `base`? Exact distribution of U when neither side has more than 20 values
// (ties not corrected, which errs to the larger p), else the normal approximation with tie and
// continuity correction. Neither series is empty.
RankTest rank_test(std::span<const double> base, std::span<const double> other);

}  // namespace spmmbench
