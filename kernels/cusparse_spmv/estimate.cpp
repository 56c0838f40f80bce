// The time of cuSPARSE's products with a vector.

#include "cusparse_spmv/factors.hpp"
#include "select/estimate.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

std::vector<Amount> of_call() {
  return {{"launch", "launches", amounts::launch},
          {"gather_rows", "us", amounts::gather_rows},
          {"nonzeros", "100 an SM", amounts::nonzeros},
          {"longest_row", "1000 nonzeros", amounts::longest_row}};
}

SPMMBENCH_REGISTER_ESTIMATOR({.spec = "cusparse_spmv",
                              .us = of_call(),
                              .prepare_ms = prepare_amounts::of_csr(),
                              .factors = cusparse_spmv::factors()});
SPMMBENCH_REGISTER_ESTIMATOR({.spec = "cusparse_spmv_alg1",
                              .us = of_call(),
                              .prepare_ms = prepare_amounts::of_csr(),
                              .factors = cusparse_spmv::factors()});
SPMMBENCH_REGISTER_ESTIMATOR({.spec = "cusparse_spmv_alg2",
                              .us = of_call(),
                              .prepare_ms = prepare_amounts::of_csr(),
                              .factors = cusparse_spmv::factors()});

}  // namespace
}  // namespace spmmbench
