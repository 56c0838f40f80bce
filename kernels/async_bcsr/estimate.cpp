// The time of dense blocks of 128 x 64.

#include <cmath>

#include "async_bcsr/factors.hpp"
#include "select/estimate.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::async_bcsr {
namespace {

constexpr double kBlockColumns = 64;

// Blocks that the busiest SM walks, 128 x 256 of C at a time.
double block_steps(const Product& p) {
  const double tiles =
      std::ceil(p.f.rows / amounts::kTileOfC) * std::ceil(p.columns / (2 * amounts::kTileOfC));
  return std::ceil(tiles / p.device.sm_count) * p.f.band_blocks;
}
// The part of the blocks that the L2 cache cannot hold, from memory.
double block_spill(const Product& p) {
  return p.spill_us(std::ceil(p.f.rows / amounts::kTileOfC) * amounts::kTileOfC * p.f.band_blocks *
                    kBlockColumns * p.value_bytes);
}

// Emptier blocks were never the fastest (select/features.hpp).
Standing standing_of(const Product& p) { return full_if(p.f.block_fill >= kLeastBlockFill); }

// Nothing can be faster than reading the spill at the rate of memory, and no recorded case of
// scattered nonzeros shows it: its factor is at least 1.
SPMMBENCH_REGISTER_ESTIMATOR({.spec = "async_bcsr",
                              .us = {{"launch", "launches", amounts::launch},
                                     {"c", "us", amounts::c},
                                     {"block_steps", "blocks", block_steps},
                                     {"block_spill", "us", block_spill, 1}},
                              .prepare_ms = prepare_amounts::of_csr(),
                              .factors = async_bcsr::factors(),
                              .preparation = async_bcsr::preparation(),
                              .standing = standing_of,
                              .on_device = true});

}  // namespace
}  // namespace spmmbench::async_bcsr
