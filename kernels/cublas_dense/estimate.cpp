// The time of a product with A's zeros.

#include "select/estimate.hpp"
#include "cublas_dense/factors.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::cublas_dense {
namespace {

SPMMBENCH_REGISTER_ESTIMATOR({.spec = "cublas_dense",
                              .us = {{"launch", "launches", amounts::launch},
                                     {"dense_flops", "us", amounts::dense_flops},
                                     {"dense_a", "us", amounts::dense_a},
                                     {"dense_spill", "us", amounts::dense_spill},
                                     {"dense_depth", "1000 columns", amounts::dense_depth},
                                     {"dense_odd", "1000 columns", amounts::dense_odd},
                                     {"dense_a_odd", "us", amounts::dense_a_odd}},
                              .prepare_ms = prepare_amounts::of_dense(),
                              .factors = cublas_dense::factors(),
                              .preparation = cublas_dense::preparation(),
                              .bounds = {1},
                              .apart = true});

}  // namespace
}  // namespace spmmbench::cublas_dense
