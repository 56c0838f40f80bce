// The time of a bit for each position of A, and the nonzeros behind them.

#include <cmath>

#include "bitmap_dense/bytes.hpp"
#include "bitmap_dense/factors.hpp"
#include "select/estimate.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::bitmap_dense {
namespace {

Places places(const Product& p) { return places_of(p.entries, p.f.nnz, storage_type(p.precision)); }
// Millions of positions of A, for every 256 columns that are multiplied at once, 64 in fp8, per SM.
double positions(const Product& p) {
  constexpr double kColumns = 256, kColumnsInFp8 = 64, kUnit = 1e6;
  const double columns = is_scaled(p.precision) ? kColumnsInFp8 : kColumns;
  return places(p).count * std::ceil(p.columns / columns) / p.device.sm_count / kUnit;
}
// Bits and words that the L2 cache cannot hold, from memory.
double bitmap_spill(const Product& p) {
  const auto [count, fill] = places(p);
  return p.spill_us(bitmap_dense::bytes_of(count, fill, p.columns, p.device.l2_bytes));
}

SPMMBENCH_REGISTER_ESTIMATOR({.spec = "bitmap_dense",
                              .us = {{"launch", "launches", amounts::launch},
                                     {"b", "us", amounts::b},
                                     {"c", "us", amounts::c},
                                     {"positions", "10^6 an SM", positions},
                                     {"bitmap_spill", "us", bitmap_spill}},
                              .prepare_ms = prepare_amounts::of_csr(),
                              .factors = bitmap_dense::factors(),
                              .preparation = bitmap_dense::preparation(),
                              .bounds = {1},
                              .on_device = true});

}  // namespace
}  // namespace spmmbench::bitmap_dense
