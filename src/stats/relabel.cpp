#include "stats/relabel.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <utility>

namespace spmmbench {
namespace {

constexpr double kMostWays = 5000;    // up to this many, all are tried
constexpr std::size_t kDrawn = 2000;  // else this many are

double ways_to_choose(std::size_t chosen, std::size_t of) {
  double ways = 1;
  for (std::size_t i = 1; i <= chosen; ++i)
    ways *= static_cast<double>(of - chosen + i) / static_cast<double>(i);
  return std::round(ways);
}

// Every way to choose the runs that are called NEW. Runs are numbered, those of BASE first.
using Ways = std::vector<std::vector<std::size_t>>;

Ways make_ways(std::size_t base, std::size_t fresh) {
  std::vector<char> is_fresh(base, 0);  // as measured, and the first way in lexical order
  is_fresh.resize(base + fresh, 1);
  Ways ways;
  const auto add = [&] {
    ways.emplace_back();
    for (std::size_t run = 0; run < is_fresh.size(); ++run)
      if (is_fresh[run]) ways.back().push_back(run);
  };
  if (ways_to_choose(fresh, base + fresh) <= kMostWays) {
    do add();
    while (std::next_permutation(is_fresh.begin(), is_fresh.end()));
  } else {
    std::mt19937 random(1);
    while (ways.size() < kDrawn) {
      add();
      std::shuffle(is_fresh.begin(), is_fresh.end(), random);
    }
  }
  return ways;
}

// Made once: all cases of a comparison have the same numbers of runs, or nearly.
const Ways& all_ways(std::size_t base, std::size_t fresh) {
  thread_local std::map<std::pair<std::size_t, std::size_t>, Ways> known;
  const auto [it, is_new] = known.try_emplace({base, fresh});
  if (is_new) it->second = make_ways(base, fresh);
  return it->second;
}

// The runs of one case, any of which may be called NEW.
class Pool {
 public:
  Pool(std::span<const double> base, std::span<const double> fresh, const SideTest& test)
      : base_(static_cast<double>(base.size())),
        fresh_(static_cast<double>(fresh.size())),
        log_margin_(std::log1p(test.margin)),
        least_deviation_(test.least_deviation),
        values_(base.begin(), base.end()) {
    values_.insert(values_.end(), fresh.begin(), fresh.end());
    const double mean = std::accumulate(values_.begin(), values_.end(), 0.0) / (base_ + fresh_);
    for (double& value : values_) {
      value -= mean;  // so that they sum to 0
      squares_ += value * value;
    }
  }

  const std::vector<double>& values() const { return values_; }

  // The t of slower when the values called NEW have this sum. It grows with the sum.
  double t(double fresh_sum) const {
    const double difference = fresh_sum / fresh_ + fresh_sum / base_;
    if (difference <= log_margin_) return 0;  // or less
    const double within = squares_ - fresh_sum * fresh_sum / fresh_ - fresh_sum * fresh_sum / base_;
    const double deviation =
        std::max(std::sqrt(std::max(within, 0.0) / (base_ + fresh_ - 2)), least_deviation_);
    return (difference - log_margin_) / (deviation * std::sqrt(1 / base_ + 1 / fresh_));
  }

  // The larger one of the t of slower and of faster.
  double largest_t() const {
    std::vector<double> sorted = values_;
    std::sort(sorted.begin(), sorted.end());
    const auto fresh = static_cast<std::ptrdiff_t>(fresh_);
    const double least = std::accumulate(sorted.begin(), sorted.begin() + fresh, 0.0);
    const double most = std::accumulate(sorted.end() - fresh, sorted.end(), 0.0);
    return std::max(t(most), t(-least));
  }

 private:
  double base_, fresh_, log_margin_, least_deviation_;
  std::vector<double> values_;
  double squares_ = 0;
};

}  // namespace

Relabelled relabel(std::span<const double> base, std::span<const double> fresh,
                   const SideTest& test) {
  if (base.size() + fresh.size() < 3) return {};
  const Pool pool(base, fresh, test);
  const Ways& ways = all_ways(base.size(), fresh.size());
  Relabelled out;
  out.weight = 1 / static_cast<double>(ways.size());
  if (pool.largest_t() < kLeastT) return out;  // as for most cases
  for (const std::vector<std::size_t>& way : ways) {
    double sum = 0;
    for (const std::size_t run : way) sum += pool.values()[run];
    if (const double t = pool.t(sum); t >= kLeastT) out.slower.push_back(t);
    if (const double t = pool.t(-sum); t >= kLeastT) out.faster.push_back(t);
  }
  return out;
}

double chance_of_one_level_per_side(std::size_t base, std::size_t fresh) {
  const auto b = static_cast<double>(base), n = static_cast<double>(fresh);
  return std::pow(b / (b + n), b) * std::pow(n / (b + n), n);
}

}  // namespace spmmbench
