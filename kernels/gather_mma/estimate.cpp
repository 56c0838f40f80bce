// The time of slots that are as long as the longest of eight.

#include <algorithm>
#include <cmath>

#include "gather_mma/factors.hpp"
#include "gather_mma/format.hpp"
#include "select/estimate.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::gather_mma {
namespace {

// The slots that are read (gather_mma/format.hpp). All eight slots of a row in a chunk of columns
// are as long as the longest: with scattered nonzeros 1.42 deviations above their mean, which is
// what the largest of eight normal numbers is on average; where B lies twice in shared memory, they
// are even but for one. Groups of four add half of three.
double slots_of(const MatrixFeatures& f, bool two_copies) {
  constexpr double kLongest = 1.42, kGroupEnd = (SlotStreams::kGroupQuads - 1) / 2.0;
  const auto chunks =
      static_cast<double>(SlotStreams::least_chunks(static_cast<std::int64_t>(f.cols)));
  const double slots = std::max(1.0, f.rows * chunks * SlotStreams::kOctet);
  const double mean = f.nnz / slots;
  const bool is_level = two_copies && mean * SlotStreams::kOctet >= SlotStreams::Turns::kLeast;
  return slots * (mean + (is_level ? 1 : kLongest * std::sqrt(mean)) + kGroupEnd);
}
// B passes through shared memory, rows that no nonzero refers to included.
double all_of_b(const Product& p) { return p.memory_us(p.f.cols * p.row_bytes); }
// Groups of 8 columns that are multiplied at once.
double groups(const Product& p) { return p.n <= 8 ? 1 : 2; }
double passes(const Product& p) { return std::ceil(p.columns / (8 * groups(p))); }
double slots(const Product& p) {
  constexpr double kUnit = 1000;
  const bool two_copies = groups(p) == 1 || is_scaled(p.precision);
  return p.per_sm(slots_of(p.f, two_copies) * passes(p)) / kUnit;
}
double slot_groups(const Product& p) { return slots(p) * groups(p); }

SPMMBENCH_REGISTER_ESTIMATOR({.spec = "gather_mma",
                              .us = {{"launch", "launches", amounts::launch},
                                     {"b", "us", all_of_b},
                                     {"slots", "100,000 an SM", slots},
                                     {"slot_groups", "100,000 an SM", slot_groups}},
                              .prepare_ms = prepare_amounts::of_csr(),
                              .factors = gather_mma::factors(),
                              .preparation = gather_mma::preparation(),
                              .on_device = true});

}  // namespace
}  // namespace spmmbench::gather_mma
