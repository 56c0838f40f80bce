#pragma once
// Some rows of a larger B, made where they are used.

#include <cstdint>

#include "spmmbench/device.hpp"
#include "spmmbench/precision.hpp"
#include "spmmbench/random.hpp"

namespace spmmbench {

// What element (k, first_column + j) of the larger B is: drawn from a seed, or of a lattice.
struct ValuesOfB {
  std::uint64_t seed = 0;  // of the stream of B
  Precision precision = Precision::fp32;
  bool of_lattice = false;
  Lattice lattice = {};
  std::int64_t first_column = 0;

  SPMMBENCH_HOST_DEVICE double operator()(std::int64_t k, std::int64_t j) const {
    return of_lattice ? lattice.b(k, first_column + j)
                      : uniform_in(precision, seed, k, first_column + j);
  }
};

// Enqueues: row i of the row-major `view` = row rows[i] of the larger B, as many columns of it,
// zeros where that is -1; the padding is NaN. `rows` lies on the device, with a number for each row
// of the view.
void cuda_fill_rows(const DenseView& view, const std::int32_t* rows, const ValuesOfB& values,
                    Device& device);

}  // namespace spmmbench
