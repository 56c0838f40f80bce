// The time of a product with A's zeros in fp8.

#include "select/estimate.hpp"
#include "cublaslt_dense/factors.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::cublaslt_dense {
namespace {

// cuBLASLt takes a column-major B alone.
Standing standing_of(const Product& p) {
  return full_if(p.is_vector() || p.layout == Layout::col_major);
}

SPMMBENCH_REGISTER_ESTIMATOR({.spec = "cublaslt_dense",
                              .us = {{"launch", "launches", amounts::launch},
                                     {"dense_flops", "us", amounts::dense_flops},
                                     {"dense_a", "us", amounts::dense_a},
                                     {"dense_spill", "us", amounts::dense_spill},
                                     {"dense_depth", "1000 columns", amounts::dense_depth}},
                              .prepare_ms = prepare_amounts::of_dense(),
                              .factors = cublaslt_dense::factors(),
                              .preparation = cublaslt_dense::preparation(),
                              .standing = standing_of});

}  // namespace
}  // namespace spmmbench::cublaslt_dense
