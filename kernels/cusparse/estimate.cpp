// The time of cuSPARSE's algorithms that auto considers. The others were the fastest of a vector by
// 1.07 at most, and never of more columns (docs/decisions/selection-model.md).

#include "select/estimate.hpp"
#include "cusparse/factors.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::cusparse {
namespace {

std::vector<Amount> csr() {
  return {{"launch", "launches", amounts::launch},
          {"a_csr", "us", amounts::a_csr},
          {"c", "us", amounts::c},
          {"spill", "us", amounts::spill},
          {"gather_rows", "us", amounts::gather_rows},
          {"gather_distinct", "us", amounts::gather_distinct},
          {"nonzeros", "100 an SM", amounts::nonzeros},
          {"rows", "100 rows an SM", amounts::rows},
          {"longest_row", "1000 nonzeros", amounts::longest_row}};
}

// csr_merge needs no preparation either. Where it runs it took at most 1.05 times as long in each
// of 494 recorded cases of more columns than one, and half as long where long rows read a B that
// the cache does not hold, which no estimate of this one tells.
Standing standing_of_default(const Product& p) {
  return full_if(p.is_vector() || p.layout == Layout::col_major, Standing::trial);
}
// In 16 bits it takes at least 1.6 times as long as the fastest, of a vector 1.2 times.
Standing standing_of_alg3(const Product& p) { return full_if(p.value_bytes > 2 && !p.is_vector()); }
// Sliced ELLPACK stores every row as long as the longest of 32. It was the fastest of no matrix
// that the L2 cache holds.
Standing standing_of_sell(const Product& p) {
  return full_if(p.f.cv_row <= kAlikeRows && amounts::spill(p) > 0);
}

SPMMBENCH_REGISTER_ESTIMATOR({.spec = "cusparse_csr_default",
                              .us = csr(),
                              .factors = cusparse::factors(),
                              .standing = standing_of_default,
                              .bounds = {1},
                              .on_device = true});
SPMMBENCH_REGISTER_ESTIMATOR({.spec = "cusparse_csr_alg3",
                              .us = csr(),
                              .prepare_ms = prepare_amounts::of_csr(),
                              .factors = cusparse::factors(),
                              .preparation = cusparse::preparation(),
                              .standing = standing_of_alg3,
                              .bounds = {32},
                              .on_device = true});
SPMMBENCH_REGISTER_ESTIMATOR({.spec = "cusparse_spmv_sell",
                              .us = {{"launch", "launches", amounts::launch},
                                     {"nonzeros", "100 an SM", amounts::nonzeros},
                                     {"longest_row", "1000 nonzeros", amounts::longest_row}},
                              .prepare_ms = prepare_amounts::of_csr(),
                              .factors = cusparse::factors(),
                              .preparation = cusparse::preparation(),
                              .standing = standing_of_sell,
                              .on_device = true,
                              .most_n = 1});

}  // namespace
}  // namespace spmmbench::cusparse
