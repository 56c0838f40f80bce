// The time that the kernel expects of its division of the product.

#include <algorithm>
#include <cstdint>

#include "dense_cluster/factors.hpp"
#include "dense_cluster/split.hpp"
#include "select/estimate.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::dense_cluster {
namespace {

struct Division {
  explicit Division(const Product& p)
      : of{.m = static_cast<std::int64_t>(p.f.rows),
           .k = static_cast<std::int64_t>(p.f.cols),
           .n = p.n,
           // A matrix of one column is the same in both layouts.
           .layout = p.is_vector() ? Layout::col_major : p.layout,
           .value_bytes = static_cast<int>(bytes_of(storage_type(p.precision)))},
        split(choose_split(of, static_cast<int>(p.device.sm_count))) {}
  Extents of;
  Split split;
};
double expected(const Product& p) { return Division(p).split.us; }
// What all CTAs copy, from the L2 cache.
double copies(const Product& p) {
  const Division d(p);
  return copied_bytes(d.of, d.split) / p.device.gather_bytes_per_us;
}
// CTAs that begin on a multiprocessor where another has ended, whose first copies nothing hides.
double later_ctas(const Product& p) {
  const Division d(p);
  if (!d.split.whole_sm) return 0;
  return std::max(0.0, ctas_of(d.of, d.split) / p.device.sm_count - 1);
}
// Between 1.1 and 1.9 us for 400,000 rows of 300 columns and a million of 64 (H200, N = 8 to 128).
constexpr double kLeastLaterUs = 1.1;

// Where fewer entries are nonzero it takes over twice the least time in every recorded case.
Standing standing_of(const Product& p) {
  constexpr double kLeastShare = 1.0 / 128;
  return full_if(p.f.nnz >= kLeastShare * p.entries);
}

SPMMBENCH_REGISTER_ESTIMATOR({.spec = "dense_cluster",
                              .us = {{"launch", "launches", amounts::launch},
                                     {"expected", "us", expected},
                                     {"copies", "us", copies},
                                     {"later_ctas", "an SM", later_ctas, kLeastLaterUs},
                                     {"dense_a", "us", amounts::dense_a},
                                     {"dense_spill", "us", amounts::dense_spill}},
                              .prepare_ms = prepare_amounts::of_dense(),
                              .factors = dense_cluster::factors(),
                              .preparation = dense_cluster::preparation(),
                              .standing = standing_of,
                              .bounds = {1},
                              .on_device = true,
                              .by_sizes = true,
                              .any_rows_from = 1});

}  // namespace
}  // namespace spmmbench::dense_cluster
