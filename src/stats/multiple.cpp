#include "stats/multiple.hpp"

#include <algorithm>
#include <numeric>

namespace spmmbench {
namespace {

// Indices, the smallest p first.
std::vector<std::size_t> by_p(std::span<const double> p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
  return order;
}

}  // namespace

std::vector<bool> holm(std::span<const double> p, double alpha) {
  const std::vector<std::size_t> order = by_p(p);
  std::vector<bool> rejected(p.size(), false);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (p[order[i]] >= alpha / static_cast<double>(order.size() - i)) break;
    rejected[order[i]] = true;
  }
  return rejected;
}

std::vector<bool> benjamini_hochberg(std::span<const double> p, double alpha) {
  const std::vector<std::size_t> order = by_p(p);
  const auto all = static_cast<double>(order.size());
  std::size_t count = order.size();
  while (count > 0 && p[order[count - 1]] >= alpha * static_cast<double>(count) / all) --count;
  std::vector<bool> rejected(p.size(), false);
  for (std::size_t i = 0; i < count; ++i) rejected[order[i]] = true;
  return rejected;
}

}  // namespace spmmbench
