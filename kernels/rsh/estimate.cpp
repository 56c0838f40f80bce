// The time of windows in an order of rows that share columns.

#include "select/estimate.hpp"
#include "rsh/factors.hpp"
#include "spmmbench/registry.hpp"
#include "window/amounts.hpp"

namespace spmmbench::rsh {
namespace {

// auto takes a vector as column-major, which rsh does not run.
Standing standing_of(const Product& p) { return full_if(!p.is_vector()); }

SPMMBENCH_REGISTER_ESTIMATOR({.spec = "rsh",
                              .us = {{"launch", "launches", amounts::launch},
                                     {"c", "us", amounts::c},
                                     {"tiles", "100 tiles an SM", window::tiles},
                                     {"parts", "10 CTAs", window::parts},
                                     {"depth", "10 tiles", window::depth},
                                     {"longest_row", "1000 nonzeros", amounts::longest_row},
                                     {"ordered_tiles", "100 tiles an SM", window::ordered_tiles}},
                              .prepare_ms = window::prepare_with_search(),
                              .factors = rsh::factors(),
                              .standing = standing_of,
                              .on_device = true});

}  // namespace
}  // namespace spmmbench::rsh
