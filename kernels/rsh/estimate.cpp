// The time of windows in an order of rows that share columns.

#include "select/estimate.hpp"
#include "rsh/factors.hpp"
#include "spmmbench/registry.hpp"
#include "window/amounts.hpp"

namespace spmmbench::rsh {
namespace {

// auto takes a vector as column-major, which rsh does not run. In 16 bits rsh was the fastest of
// nothing that is narrower, nor of anything smaller but for 9 products of 213 that were tried, by
// 4 % at most (docs/decisions/selection-trials.md).
Standing standing_of(const Product& p) {
  constexpr double kLeastNonzeros = 60'000, kLeastRows = 600;
  constexpr std::int64_t kLeastColumns = 33;  // of B
  const bool is_small = p.f.nnz < kLeastNonzeros || p.f.rows < kLeastRows || p.n < kLeastColumns;
  return full_if(!p.is_vector() && !(p.value_bytes <= 2 && is_small));
}

SPMMBENCH_REGISTER_ESTIMATOR({.spec = "rsh",
                              .us = {{"launch", "launches", amounts::launch},
                                     {"c", "us", amounts::c},
                                     {"cut", "times", window::cut},
                                     {"depth", "10 tiles", window::depth},
                                     {"longest_row", "1000 nonzeros", amounts::longest_row},
                                     {"ordered_tiles", "100 tiles an SM", window::ordered_tiles}},
                              .prepare_ms = window::prepare_with_search(),
                              .factors = rsh::factors(),
                              .preparation = rsh::preparation(),
                              .standing = standing_of,
                              .on_device = true});

}  // namespace
}  // namespace spmmbench::rsh
