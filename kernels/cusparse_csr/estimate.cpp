// The time of cuSPARSE's algorithms on CSR.

#include "cusparse_csr/factors.hpp"
#include "select/estimate.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

std::vector<Amount> of_call() {
  return {{"launch", "launches", amounts::launch},
          {"a_csr", "us", amounts::a_csr},
          {"c", "us", amounts::c},
          {"spill", "us", amounts::spill},
          {"gather_rows", "us", amounts::gather_rows},
          {"gather_distinct", "us", amounts::gather_distinct},
          {"gather_spill", "us", amounts::gather_spill},
          {"nonzeros", "100 an SM", amounts::nonzeros},
          {"rows", "100 rows an SM", amounts::rows},
          {"longest_row", "1000 nonzeros", amounts::longest_row},
          {"variation", "deviations", amounts::variation}};
}

SPMMBENCH_REGISTER_ESTIMATOR({.spec = "cusparse_csr_default",
                              .us = of_call(),
                              .prepare_ms = prepare_amounts::of_csr(),
                              .factors = cusparse_csr::factors()});
SPMMBENCH_REGISTER_ESTIMATOR({.spec = "cusparse_csr_alg1",
                              .us = of_call(),
                              .prepare_ms = prepare_amounts::of_csr(),
                              .factors = cusparse_csr::factors()});
SPMMBENCH_REGISTER_ESTIMATOR({.spec = "cusparse_csr_alg2",
                              .us = of_call(),
                              .prepare_ms = prepare_amounts::of_csr(),
                              .factors = cusparse_csr::factors()});
SPMMBENCH_REGISTER_ESTIMATOR({.spec = "cusparse_csr_alg3",
                              .us = of_call(),
                              .prepare_ms = prepare_amounts::of_csr(),
                              .factors = cusparse_csr::factors()});

}  // namespace
}  // namespace spmmbench
