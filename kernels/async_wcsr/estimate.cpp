// The time of windows of rows: what they gather, the tiles that they multiply, and what cutting and
// walking them costs.

#include "select/estimate.hpp"

#include <algorithm>

#include "async_wcsr/factors.hpp"
#include "spmmbench/registry.hpp"
#include "window/amounts.hpp"
#include "window/cost.hpp"

namespace spmmbench::async_wcsr {
namespace {

// Rows of B of 16 bytes share a sector of the L2 cache.
constexpr std::int64_t kNarrow = 8;

std::vector<Amount> windows(double (*tiles)(const Product&)) {
  return {{"launch", "launches", amounts::launch},
          {"b", "us", amounts::b},
          {"c", "us", amounts::c},
          {"spill", "us", amounts::spill},
          {"tiles", "100 tiles an SM", tiles},
          {"cut", "times", window::cut},
          {"depth", "10 tiles", window::depth},
          {"filled_rows", "100 rows an SM", window::filled_rows},
          {"variation", "deviations", amounts::variation},
          {"by_rows", "us", amounts::by_rows, 1}};
}
// Thousands of nonzeros of the longest row beyond 4000: its window is cut in many parts, whose sums
// are added up in one place.
double cut_row(const Product& p) {
  constexpr double kCounted = 4000, kUnit = 1000;  // nonzeros
  return std::max(0.0, p.f.max_row - kCounted) / kUnit;
}
std::vector<Amount> natural() {
  std::vector<Amount> all = windows(window::tiles);
  all.push_back({"a_csr", "us", amounts::a_csr});
  all.push_back({"gather_window", "us", window::gather_window});
  all.push_back({"cut_row", "1000 nonzeros", cut_row});
  return all;
}

std::vector<Amount> search() {
  std::vector<Amount> all = windows(window::tiles_of_search);
  all.push_back({"longest_row", "1000 nonzeros", amounts::longest_row});
  all.push_back({"ordered_gather", "us", window::ordered_gather});
  return all;
}

// For so few columns, no times in fp32 are recorded that factors could be fitted to.
bool is_recorded(const Product& p) { return p.precision != Precision::fp32 || p.n > kNarrow; }
Standing standing_of_natural(const Product& p) { return full_if(is_recorded(p)); }

// Where rows hardly overlap an order of them rarely gains, except where they differ in length
// (docs/decisions/selection-model.md).
Standing standing_of_search(const Product& p) {
  if (!is_recorded(p)) return Standing::left_out;
  return full_if(p.f.cv_row > kAlikeRows || rows_overlap(p.f), Standing::trial);
}

SPMMBENCH_REGISTER_ESTIMATOR({.spec = "async_wcsr",
                              .us = natural(),
                              .prepare_ms = window::prepare(),
                              .factors = async_wcsr::factors(),
                              .preparation = async_wcsr::preparation(),
                              .standing = standing_of_natural,
                              .bounds = {1, kNarrow},
                              .on_device = true,
                              .any_rows_from = 1});
SPMMBENCH_REGISTER_ESTIMATOR({.spec = "async_wcsr?order=search",
                              .us = search(),
                              .prepare_ms = window::prepare_with_search(),
                              .factors = async_wcsr::factors(),
                              .preparation = async_wcsr::preparation(),
                              .standing = standing_of_search,
                              .bounds = {1},
                              .on_device = true,
                              .ordered_as = "async_wcsr"});

}  // namespace
}  // namespace spmmbench::async_wcsr
