// The time of cuSPARSE's algorithms on coordinates.

#include "cusparse_coo/factors.hpp"
#include "select/estimate.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

std::vector<Amount> of_call() {
  return {{"launch", "launches", amounts::launch},
          {"spill", "us", amounts::spill},
          {"nonzeros", "100 an SM", amounts::nonzeros},
          {"longest_row", "1000 nonzeros", amounts::longest_row}};
}

SPMMBENCH_REGISTER_ESTIMATOR({.spec = "cusparse_coo_alg1",
                              .us = of_call(),
                              .prepare_ms = prepare_amounts::of_csr(),
                              .factors = cusparse_coo::factors()});
SPMMBENCH_REGISTER_ESTIMATOR({.spec = "cusparse_coo_alg2",
                              .us = of_call(),
                              .prepare_ms = prepare_amounts::of_csr(),
                              .factors = cusparse_coo::factors()});
SPMMBENCH_REGISTER_ESTIMATOR({.spec = "cusparse_coo_alg3",
                              .us = of_call(),
                              .prepare_ms = prepare_amounts::of_csr(),
                              .factors = cusparse_coo::factors()});
SPMMBENCH_REGISTER_ESTIMATOR({.spec = "cusparse_coo_alg4",
                              .us = of_call(),
                              .prepare_ms = prepare_amounts::of_csr(),
                              .factors = cusparse_coo::factors()});
SPMMBENCH_REGISTER_ESTIMATOR({.spec = "cusparse_spmv_coo_alg1",
                              .us = of_call(),
                              .prepare_ms = prepare_amounts::of_csr(),
                              .factors = cusparse_coo::factors()});
SPMMBENCH_REGISTER_ESTIMATOR({.spec = "cusparse_spmv_coo_alg2",
                              .us = of_call(),
                              .prepare_ms = prepare_amounts::of_csr(),
                              .factors = cusparse_coo::factors()});

}  // namespace
}  // namespace spmmbench
