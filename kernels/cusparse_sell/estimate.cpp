// The time of cuSPARSE's product with a vector in sliced ELLPACK.

#include "cusparse_sell/factors.hpp"
#include "select/estimate.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

std::vector<Amount> of_call() {
  return {{"launch", "launches", amounts::launch},
          {"gather_rows", "us", amounts::gather_rows},
          {"longest_row", "1000 nonzeros", amounts::longest_row},
          {"variation", "deviations", amounts::variation}};
}

// Every row is stored as long as the longest of 32.
Standing standing_of(const Product& p) { return full_if(p.f.cv_row <= kAlikeRows); }

SPMMBENCH_REGISTER_ESTIMATOR({.spec = "cusparse_spmv_sell",
                              .us = of_call(),
                              .prepare_ms = prepare_amounts::of_csr(),
                              .factors = cusparse_sell::factors(),
                              .standing = standing_of});

}  // namespace
}  // namespace spmmbench
