// The time of equal parts of the merge path, which gather a row of B for every nonzero.

#include "select/estimate.hpp"

#include <algorithm>
#include <cmath>

#include "csr_merge/factors.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::csr_merge {
namespace {

// Of so few columns a group of up to four lanes holds a row of B, so that a warp has eight groups
// and more, whose rows of A end at different times. The elements of a vector are multiplied while A
// is staged.
constexpr std::int64_t kFewColumns = 32;
bool is_narrow(const Product& p) { return !p.is_vector() && p.n <= kFewColumns; }

// A is read once for each slab: 32 lanes hold 16 bytes of a row of B each, 8 in 8 bits.
double a_of_slabs(const Product& p) {
  constexpr double kLanes = 32;
  const double slab_bytes = kLanes * (is_scaled(p.precision) ? 8 : 16);
  return std::ceil(p.row_bytes / slab_bytes) * amounts::a_csr(p);
}
// Rows of B that neighbouring rows of A share are gathered once by wide groups. Narrow ones ask for
// each anew: what limits them are their requests.
double gather_shared(const Product& p) {
  return is_narrow(p) ? amounts::gather_rows(p) : amounts::gather_distinct(p);
}

// Empty rows, each of which takes a narrow group a step. Long runs of them are written faster: they
// count as far as there are nonzeros between which they may lie.
double empty_rows(const Product& p) {
  return is_narrow(p) ? p.per_sm(std::min(p.f.rows * p.f.empty_rows, p.f.nnz)) : 0;
}

SPMMBENCH_REGISTER_ESTIMATOR({.spec = "csr_merge",
                              .us = {{"launch", "launches", amounts::launch},
                                     {"a_of_slabs", "us", a_of_slabs},
                                     {"b", "us", amounts::b},
                                     {"c", "us", amounts::c},
                                     {"spill", "us", amounts::spill},
                                     {"gather_rows", "us", amounts::gather_rows},
                                     {"gather_shared", "us", gather_shared},
                                     {"nonzeros", "100 an SM", amounts::nonzeros},
                                     {"loads", "100 loads an SM", amounts::loads},
                                     {"rows", "100 rows an SM", amounts::rows},
                                     {"by_rows", "us", amounts::by_rows, 1},
                                     {"empty_rows", "100 rows an SM", empty_rows}},
                              .factors = csr_merge::factors(),
                              .bounds = {1, kFewColumns},
                              .on_device = true,
                              .any_rows_from = 1});

}  // namespace
}  // namespace spmmbench::csr_merge
