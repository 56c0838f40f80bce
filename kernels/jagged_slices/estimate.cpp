// The time of slices of rows that gather a row of B for every nonzero, side by side.

#include "select/estimate.hpp"
#include "jagged_slices/factors.hpp"
#include "spmmbench/registry.hpp"
#include "window/amounts.hpp"

namespace spmmbench::jagged_slices {
namespace {

// 1 where 32 neighbouring rows have no column in common, less where they do.
double scattered(const Product& p) { return p.f.gathered_32; }
// gather_rows once rows that resemble each other are brought together.
double ordered_rows(const Product& p) { return left_by_order(p.f) * amounts::gather_rows(p); }

std::vector<Amount> slices() {
  return {{"launch", "launches", amounts::launch},
          {"c", "us", amounts::c},
          {"spill", "us", amounts::spill},
          {"gather_distinct", "us", amounts::gather_distinct},
          {"nonzeros", "100 an SM", amounts::nonzeros},
          {"loads", "100 loads an SM", amounts::loads},
          {"longest_row", "1000 nonzeros", amounts::longest_row},
          {"variation", "deviations", amounts::variation},
          {"mean_row", "100 nonzeros", amounts::mean_row},
          {"scattered", "share", scattered}};
}
std::vector<Amount> natural() {
  std::vector<Amount> all = slices();
  all.push_back({"b", "us", amounts::b});
  all.push_back({"rows", "100 rows an SM", amounts::rows});
  return all;
}
std::vector<Amount> search() {
  std::vector<Amount> all = slices();
  all.push_back({"ordered_rows", "us", ordered_rows});
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
                        (!p.is_vector() || p.f.mean_row >= kLeastOrderedRow);
  return reorders ? full_if(rows_overlap(p.f), Standing::trial) : Standing::left_out;
}

SPMMBENCH_REGISTER_ESTIMATOR({.spec = "jagged_slices",
                              .us = natural(),
                              .prepare_ms = prepare_amounts::of_csr(),
                              .factors = jagged_slices::factors(),
                              .standing = standing_of_natural,
                              .on_device = true,
                              .any_rows_from = 1});
SPMMBENCH_REGISTER_ESTIMATOR({.spec = "jagged_slices?order=search",
                              .us = search(),
                              .prepare_ms = window::prepare_with_search(),
                              .factors = jagged_slices::factors(),
                              .standing = standing_of_search,
                              .on_device = true});

}  // namespace
}  // namespace spmmbench::jagged_slices
