// The time of a bit for each position of A, and the nonzeros behind them.

#include <algorithm>
#include <cmath>

#include "bitmap_dense/bytes.hpp"
#include "bitmap_dense/factors.hpp"
#include "select/estimate.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::bitmap_dense {
namespace {

// Millions of entries of A, for every 256 columns that are multiplied at once, per SM.
double positions(const Product& p) {
  constexpr double kColumns = 256, kUnit = 1e6;
  return p.entries * std::ceil(p.columns / kColumns) / p.device.sm_count / kUnit;
}
// Bits and words that the L2 cache cannot hold, from memory.
double bitmap_spill(const Product& p) {
  const double fill = p.f.nnz / std::max(1.0, p.entries);
  return p.spill_us(bitmap_dense::bytes_of(p.entries, fill, p.columns, p.device.l2_bytes));
}

SPMMBENCH_REGISTER_ESTIMATOR({.spec = "bitmap_dense",
                              .us = {{"launch", "launches", amounts::launch},
                                     {"b", "us", amounts::b},
                                     {"c", "us", amounts::c},
                                     {"positions", "10^6 an SM", positions},
                                     {"bitmap_spill", "us", bitmap_spill}},
                              .prepare_ms = prepare_amounts::of_csr(),
                              .factors = bitmap_dense::factors(),
                              .on_device = true});

}  // namespace
}  // namespace spmmbench::bitmap_dense
