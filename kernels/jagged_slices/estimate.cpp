// The time of slices of rows that gather a row of B for every nonzero, side by side.

#include "select/estimate.hpp"

#include <cstdint>

#include "jagged_slices/factors.hpp"
#include "jagged_slices/order.hpp"
#include "reorder/match.hpp"
#include "spmmbench/registry.hpp"
#include "window/amounts.hpp"

namespace spmmbench::jagged_slices {
namespace {

// 1 where 32 neighbouring rows have no column in common, less where they do.
double scattered(const Product& p) { return p.f.gathered_32; }
// Loads of rows of B that no neighbouring row of A has in a cache by then. They are as rare as the
// square of `scattered`: where rows differ from all neighbours, columns lie apart, too.
double lone_loads(const Product& p) { return amounts::loads(p) * scattered(p) * scattered(p); }

std::vector<Amount> slices() {
  return {{"launch", "launches", amounts::launch},
          {"c", "us", amounts::c},
          {"spill", "us", amounts::spill},
          {"loads", "100 loads an SM", amounts::loads},
          {"longest_row", "1000 nonzeros", amounts::longest_row},
          {"variation", "deviations", amounts::variation},
          {"mean_row", "100 nonzeros", amounts::mean_row},
          {"scattered", "share", scattered},
          {"lone_loads", "100 loads an SM", lone_loads},
          {"by_rows", "us", amounts::by_rows, 1}};
}
// B counts in the natural order alone: an order of rows brings its readers together.
std::vector<Amount> natural() {
  std::vector<Amount> all = slices();
  all.push_back({"b", "us", amounts::b});
  return all;
}

// The kernel has no tiles for more columns.
constexpr std::int64_t kMostColumns = 32;
Standing standing_of_natural(const Product& p) { return full_if(p.n <= kMostColumns); }

// Where neighbours share enough columns, and where short rows multiply a vector, the kernel keeps
// the natural order; where rows hardly overlap an order rarely gains
// (docs/decisions/selection-model.md).
Standing standing_of_search(const Product& p) {
  constexpr double kLeastScattered = 0.2;
  const bool reorders = p.n <= kMostColumns && scattered(p) >= kLeastScattered &&
                        (!p.is_vector() || p.f.mean_row >= jagged::kLeastOrderedRow) &&
                        match::is_filled(p.f.rows, p.f.cols, p.f.nnz);
  return reorders ? full_if(rows_overlap(p.f), Standing::trial) : Standing::left_out;
}

SPMMBENCH_REGISTER_ESTIMATOR({.spec = "jagged_slices",
                              .us = natural(),
                              .prepare_ms = prepare_amounts::of_csr(),
                              .factors = jagged_slices::factors(),
                              .preparation = jagged_slices::preparation(),
                              .standing = standing_of_natural,
                              .bounds = {1},
                              .on_device = true,
                              .any_rows_from = 1});
SPMMBENCH_REGISTER_ESTIMATOR({.spec = "jagged_slices?order=search",
                              .us = slices(),
                              .prepare_ms = window::prepare_with_search(),
                              .factors = jagged_slices::factors(),
                              .preparation = jagged_slices::preparation(),
                              .standing = standing_of_search,
                              .table = "jagged_slices",
                              .bounds = {1},
                              .on_device = true});

}  // namespace
}  // namespace spmmbench::jagged_slices
