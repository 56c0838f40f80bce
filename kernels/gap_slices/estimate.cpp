// The time of nonzeros that are stored with the gaps between them.

#include <algorithm>
#include <cmath>

#include "gap_slices/factors.hpp"
#include "gap_slices/format.hpp"
#include "select/estimate.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench::gap_slices {
namespace {

// The bytes of values and gaps (gap_slices/format.hpp), where nonzeros lie at random. Wherever the
// widest gap goes by without a nonzero, a zero is stored before the next one.
double gap_bytes(const MatrixFeatures& f, double value_bytes) {
  constexpr double kLeastShare = 1e-9;  // so that nothing is divided by 0
  const double empty = 1 - f.nnz / std::max(1.0, f.rows * f.cols);
  const auto of_bits = [&](double bits) {
    const double widest = std::exp2(bits) - 1;
    const double share_of_nonzeros = std::max(1 - std::pow(empty, widest), kLeastShare);
    return f.nnz / share_of_nonzeros * (value_bytes + bits / 8);
  };
  return std::min(of_bits(4), of_bits(8));
}
// Lanes that end before others of their slice, and blocks with a long row, take longer.
double gaps(const Product& p) {
  const GapSlices::Counts counts = {.rows = static_cast<std::int64_t>(p.f.rows),
                                    .cols = static_cast<std::int64_t>(p.f.cols),
                                    .nnz = static_cast<std::int64_t>(p.f.nnz),
                                    .longest_row = static_cast<std::int64_t>(p.f.max_row)};
  const auto blocks = static_cast<int>(p.device.sm_count);
  return p.memory_us(gap_bytes(p.f, p.value_bytes)) *
         GapSlices::choose_row_lanes(counts, blocks).times;
}

SPMMBENCH_REGISTER_ESTIMATOR({.spec = "gap_slices",
                              .us = {{"launch", "launches", amounts::launch}, {"gaps", "us", gaps}},
                              .prepare_ms = prepare_amounts::of_csr(),
                              .factors = gap_slices::factors(),
                              .preparation = gap_slices::preparation(),
                              .on_device = true,
                              .most_n = 1});

}  // namespace
}  // namespace spmmbench::gap_slices
