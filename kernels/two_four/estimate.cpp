// The time of two of every four entries with their indices.

#include "select/estimate.hpp"
#include "spmmbench/registry.hpp"
#include "two_four/factors.hpp"

namespace spmmbench::two_four {
namespace {

double packed_bytes(const Product& p) {
  constexpr double kIndexBytes = 1.0 / 8;  // of an entry of A: two bits of every second one
  return p.entries * (p.value_bytes / 2 + kIndexBytes);
}
double packed(const Product& p) { return p.memory_us(packed_bytes(p)); }

// It takes 2:4 structured sparsity alone, and asking it would read the whole matrix.
Standing standing_of(const Product& p) { return full_if(p.f.most_of_four <= kMostOfTwoFour); }

SPMMBENCH_REGISTER_ESTIMATOR({.spec = "two_four",
                              .us = {{"launch", "launches", amounts::launch},
                                     {"b", "us", amounts::b},
                                     {"dense_flops", "us", amounts::dense_flops},
                                     {"packed", "us", packed}},
                              .prepare_ms = prepare_amounts::of_csr(),
                              .factors = two_four::factors(),
                              .preparation = two_four::preparation(),
                              .standing = standing_of,
                              .bounds = {16}});

}  // namespace
}  // namespace spmmbench::two_four
