// The time of two of every four entries with their indices, once A is padded to whole blocks.

#include "select/estimate.hpp"
#include "spmmbench/registry.hpp"
#include "two_four/factors.hpp"
#include "two_four/format.hpp"

namespace spmmbench::two_four {
namespace {

double packed_bytes(const Product& p) {
  return static_cast<double>(TwoFour::bytes(static_cast<std::int64_t>(p.f.rows),
                                            static_cast<std::int64_t>(p.f.cols),
                                            storage_type(p.precision)));
}
double packed(const Product& p) { return p.memory_us(packed_bytes(p)); }

// Of A, zeros that pad it included.
double entries(const Product& p) {
  constexpr double kIndexBytes = 1.0 / 8;  // of an entry of A: two bits of every second one
  return packed_bytes(p) / (p.value_bytes / 2 + kIndexBytes);
}
double padded_flops(const Product& p) { return amounts::dense_flops(p) * entries(p) / p.entries; }
double kept(const Product& p) {
  constexpr double kMillion = 1e6;
  return entries(p) / 2 / kMillion;
}

// It takes 2:4 structured sparsity alone, and asking it would read the whole matrix.
Standing standing_of(const Product& p) { return full_if(p.f.most_of_four <= kMostOfTwoFour); }

SPMMBENCH_REGISTER_ESTIMATOR({.spec = "two_four",
                              .us = {{"launch", "launches", amounts::launch},
                                     {"b", "us", amounts::b},
                                     {"c", "us", amounts::c, 1},
                                     {"padded_flops", "us", padded_flops},
                                     {"packed", "us", packed}},
                              .prepare_ms = {{"kept", "10^6", kept}},
                              .factors = two_four::factors(),
                              .preparation = two_four::preparation(),
                              .standing = standing_of,
                              .bounds = {16}});

}  // namespace
}  // namespace spmmbench::two_four
