#pragma once
// A product that tests launch on the host.

#include <cstdint>

#include "spmmbench/device.hpp"
#include "spmmbench/matrix.hpp"
#include "verify/reference.hpp"

namespace spmmbench {

// C = A B, each sum in fp64.
inline void multiply(const CsrMatrix& a, const DenseView& b, const DenseView& c) {
  for (std::int64_t row = 0; row < a.rows; ++row)
    for (std::int64_t j = 0; j < c.cols; ++j) {
      double sum = 0;
      for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
        sum += a.value(e) * element_at(b, a.col_idx[e], j);
      store_element(c.type, c.data, c.layout == Layout::row_major ? row * c.ld + j : j * c.ld + row,
                    sum);
    }
}

}  // namespace spmmbench
