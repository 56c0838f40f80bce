#pragma once
// Mann-Whitney rank test, and how much a series of dependent samples tells.

#include <span>

namespace spmmbench {

// How many independent samples tell as much as this series: n / (1 + 2 s), in [1, n]. s is the sum
// of the autocorrelations of the ranks over pairs of lags (Geyer 1992, initial sequence). It ends
// before the first pair that is at most sqrt(2 / n), the standard error of a pair without
// correlation, so that ten independent samples count as ten.
double effective_size(std::span<const double> series);

struct RankTest {
  double greater = 0.5;  // P(other > base) + P(other = base) / 2, from all pairs
  double p = 1;          // one-sided: how likely `greater` is this large when the two are alike
};

// Is `other` larger than `base`? Uses the exact distribution of U when neither side has more than
// 20 values (without a correction for ties, which makes p larger), else the normal approximation
// with corrections for ties and continuity. Neither series is empty.
RankTest rank_test(std::span<const double> base, std::span<const double> other);

}  // namespace spmmbench
