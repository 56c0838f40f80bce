// The time of cuSPARSE's algorithms. They gather a row of B for every nonzero; each list has the
// amounts without which estimates of its algorithms are worse.

#include "select/estimate.hpp"
#include "cusparse/factors.hpp"

namespace spmmbench::cusparse {
namespace {

std::vector<Amount> csr() {
  return {{"launch", "launches", amounts::launch},
          {"a_csr", "us", amounts::a_csr},
          {"c", "us", amounts::c},
          {"spill", "us", amounts::spill},
          {"gather_rows", "us", amounts::gather_rows},
          {"gather_distinct", "us", amounts::gather_distinct},
          {"gather_spill", "us", amounts::gather_spill},
          {"nonzeros", "100 an SM", amounts::nonzeros},
          {"rows", "100 rows an SM", amounts::rows},
          {"longest_row", "1000 nonzeros", amounts::longest_row},
          {"variation", "deviations", amounts::variation}};
}
std::vector<Amount> coordinates() {
  return {{"launch", "launches", amounts::launch},
          {"spill", "us", amounts::spill},
          {"nonzeros", "100 an SM", amounts::nonzeros},
          {"longest_row", "1000 nonzeros", amounts::longest_row}};
}
std::vector<Amount> vector() {
  return {{"launch", "launches", amounts::launch},
          {"gather_rows", "us", amounts::gather_rows},
          {"nonzeros", "100 an SM", amounts::nonzeros},
          {"longest_row", "1000 nonzeros", amounts::longest_row},
          {"variation", "deviations", amounts::variation}};
}

// Sliced ELLPACK stores every row as long as the longest of 32.
Standing standing_of_sell(const Product& p) { return full_if(p.f.cv_row <= kAlikeRows); }

// SELL is built on the host.
bool add(const char* spec, std::vector<Amount> us, Standing (*standing)(const Product&) = nullptr,
         bool on_device = true) {
  return add_estimator({.spec = spec,
                        .us = std::move(us),
                        .prepare_ms = prepare_amounts::of_csr(),
                        .factors = cusparse::factors(),
                        .standing = standing,
                        .on_device = on_device});
}

[[maybe_unused]] const bool kAdded[] = {
    add("cusparse_csr_default", csr()),
    add("cusparse_csr_alg1", csr()),
    add("cusparse_csr_alg2", csr()),
    add("cusparse_csr_alg3", csr()),
    add("cusparse_coo_alg1", coordinates()),
    add("cusparse_coo_alg2", coordinates()),
    add("cusparse_coo_alg3", coordinates()),
    add("cusparse_coo_alg4", coordinates()),
    add("cusparse_spmv_coo_alg1", coordinates()),
    add("cusparse_spmv_coo_alg2", coordinates()),
    add("cusparse_spmv", vector()),
    add("cusparse_spmv_alg1", vector()),
    add("cusparse_spmv_alg2", vector()),
    add("cusparse_spmv_sell", vector(), standing_of_sell, false),
};

}  // namespace
}  // namespace spmmbench::cusparse
