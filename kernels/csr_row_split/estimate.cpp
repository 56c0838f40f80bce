// The time of rows that each gather a row of B for every nonzero.

#include "select/estimate.hpp"
#include "csr_row_split/factors.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::csr_row_split {
namespace {

// With fewer columns long rows take up to three times as long as equal ones
// (docs/decisions/selection-trials.md).
constexpr std::int64_t kAnyRowsFrom = 17;
// With more a tenth of the matrices takes 1.4 times as long as equal rows, and twice at most
// (docs/decisions/few-calls.md).
constexpr double kTimesBySizes = 1.2;

// auto takes a vector as column-major, which csr_row_split does not run.
Standing standing_of(const Product& p) { return full_if(!p.is_vector()); }

SPMMBENCH_REGISTER_ESTIMATOR({.spec = "csr_row_split",
                              .us = {{"launch", "launches", amounts::launch},
                                     {"b", "us", amounts::b},
                                     {"c", "us", amounts::c},
                                     {"spill", "us", amounts::spill},
                                     {"gather_distinct", "us", amounts::gather_distinct},
                                     {"nonzeros", "100 an SM", amounts::nonzeros},
                                     {"longest_row", "1000 nonzeros", amounts::longest_row},
                                     {"variation", "deviations", amounts::variation},
                                     {"uneven_rows", "us", amounts::uneven_rows},
                                     {"mean_row", "100 nonzeros", amounts::mean_row}},
                              .prepare_ms = prepare_amounts::of_csr(),
                              .factors = csr_row_split::factors(),
                              .preparation = csr_row_split::preparation(),
                              .standing = standing_of,
                              .apart = true,
                              .on_device = true,
                              .any_rows_from = kAnyRowsFrom,
                              .times_by_sizes = kTimesBySizes});

}  // namespace
}  // namespace spmmbench::csr_row_split
