#include "stats/rank_test.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace spmmbench {
namespace {

constexpr std::size_t kLargestExact = 20;

struct Ranks {
  std::vector<double> of;  // from 1; ties share their mean
  double tie_sum = 0;      // sum of t^3 - t over groups of t equal values
};

Ranks rank(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  Ranks ranks{std::vector<double>(values.size()), 0};
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const auto tied = static_cast<double>(end - begin);
    for (std::size_t at = begin; at < end; ++at)
      ranks.of[order[at]] = static_cast<double>(begin) + (tied + 1) / 2;
    ranks.tie_sum += tied * tied * tied - tied;
    begin = end;
  }
  return ranks;
}

// P(U >= u) over all equally likely orders of n and m values. counts[k] is the number of orders
// with U = k. It is built up by one of the n values at a time.
double exact_tail(int n, int m, double u) {
  std::vector<double> counts(static_cast<std::size_t>(n) * m + 1, 0);
  counts[0] = 1;
  for (int i = 1; i <= n; ++i) {  // times (1 - q^(m+i)) / (1 - q^i): the Gaussian binomial
    for (int k = n * m; k >= m + i; --k) counts[k] -= counts[k - (m + i)];
    for (int k = i; k <= n * m; ++k) counts[k] += counts[k - i];
  }
  double total = 0, tail = 0;
  for (int k = 0; k <= n * m; ++k) {
    total += counts[k];
    if (k >= u - 1e-9) tail += counts[k];
  }
  return tail / total;
}

double normal_tail(double z) { return 0.5 * std::erfc(z / std::sqrt(2.0)); }

}  // namespace

double effective_size(std::span<const double> series) {
  const auto n = static_cast<double>(series.size());
  std::vector<double> centred = rank(series).of;
  double variance = 0;
  for (double& value : centred) {
    value -= (n + 1) / 2;
    variance += value * value;
  }
  if (variance == 0) return n;
  const auto autocorrelation = [&](std::size_t lag) {
    double sum = 0;
    for (std::size_t i = lag; i < centred.size(); ++i) sum += centred[i] * centred[i - lag];
    return sum / variance;
  };
  double sum = 0;
  for (std::size_t lag = 1; lag + 1 < series.size(); lag += 2) {
    const double pair = autocorrelation(lag) + autocorrelation(lag + 1);
    if (pair <= std::sqrt(2 / n)) break;
    sum += pair;
  }
  return std::clamp(n / (1 + 2 * sum), 1.0, n);
}

RankTest rank_test(std::span<const double> base, std::span<const double> other) {
  std::vector<double> all(base.begin(), base.end());
  all.insert(all.end(), other.begin(), other.end());
  const Ranks ranks = rank(all);
  const auto n = static_cast<double>(base.size()), m = static_cast<double>(other.size());
  const double rank_sum = std::accumulate(
      ranks.of.begin() + static_cast<std::ptrdiff_t>(base.size()), ranks.of.end(), 0.0);
  const double u = rank_sum - m * (m + 1) / 2;
  RankTest test;
  test.greater = u / (n * m);
  if (base.size() <= kLargestExact && other.size() <= kLargestExact) {
    test.p = exact_tail(static_cast<int>(n), static_cast<int>(m), u);
    return test;
  }
  const double total = n + m;
  const double ties = 1 - ranks.tie_sum / (total * total * total - total);
  const double deviation = std::sqrt(n * m * (total + 1) / 12 * ties);
  if (deviation > 0) test.p = normal_tail((u - n * m / 2 - 0.5) / deviation);
  return test;
}

}  // namespace spmmbench
