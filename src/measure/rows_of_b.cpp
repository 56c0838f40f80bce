#include "measure/rows_of_b.hpp"

#include <limits>

namespace spmmbench {

void fill_rows(const DenseView& view, const std::int32_t* rows, const ValuesOfB& values,
               Device& device) {
  if (device.info().kind == DeviceKind::cuda) return cuda_fill_rows(view, rows, values, device);
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < view.rows; ++row)
    for (std::int64_t column = 0; column < view.ld; ++column) {
      double value = std::numeric_limits<double>::quiet_NaN();
      if (column < view.cols) value = rows[row] < 0 ? 0 : values(rows[row], column);
      store_element(view.type, view.data, row * view.ld + column, value);
    }
}

}  // namespace spmmbench
