// The time of equal parts of the merge path, which gather a row of B for every nonzero.

#include "select/estimate.hpp"
#include "csr_merge/factors.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::csr_merge {
namespace {

// Of so few columns a group of one or two lanes holds a row of B, and CTAs are few.
constexpr std::int64_t kNarrow = 16;
// Rows of B of so many columns are narrow.
constexpr std::int64_t kFewColumns = 32;

// Rows of B that neighbouring rows of A share are gathered once by wide groups. Narrow ones ask for
// each anew.
double gather_shared(const Product& p) {
  const bool is_narrow = p.n > 1 && p.n <= kNarrow;
  return is_narrow ? amounts::gather_rows(p) : amounts::gather_distinct(p);
}

SPMMBENCH_REGISTER_ESTIMATOR({.spec = "csr_merge",
                              .us = {{"launch", "launches", amounts::launch},
                                     {"a_csr", "us", amounts::a_csr},
                                     {"b", "us", amounts::b},
                                     {"c", "us", amounts::c},
                                     {"spill", "us", amounts::spill},
                                     {"gather_rows", "us", amounts::gather_rows},
                                     {"gather_shared", "us", gather_shared},
                                     {"nonzeros", "100 an SM", amounts::nonzeros}},
                              .factors = csr_merge::factors(),
                              .bounds = {kFewColumns},
                              .on_device = true,
                              .any_rows_from = 1});

}  // namespace
}  // namespace spmmbench::csr_merge
