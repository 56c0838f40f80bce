#pragma once
// A copy of a sparse matrix in the memory of a device.

#include <cstddef>

#include "core/steady_seconds.hpp"
#include "gpu/upload_values.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/device_csr.hpp"
#include "spmmbench/matrix.hpp"

namespace spmmbench {

class CsrOnDevice {
 public:
  // The values of `a` are rounded to `precision` already. Throws DeviceError.
  CsrOnDevice(const CsrMatrix& a, Precision precision, Device& device)
      : start_(steady_seconds()),
        row_ptr_(device.upload(a.row_ptr)),
        col_idx_(device.upload(a.col_idx)),
        values_(upload_values(device, a, storage_type(precision))),
        view_{a.rows,
              a.cols,
              a.nnz(),
              row_ptr_.as<std::int64_t>(),
              col_idx_.as<std::int32_t>(),
              values_.data(),
              storage_type(precision),
              (steady_seconds() - start_) * 1e3} {}

  const DeviceCsr& view() const { return view_; }
  std::size_t bytes() const { return sum_of_bytes(row_ptr_, col_idx_, values_); }

 private:
  double start_;  // before the arrays
  Buffer row_ptr_, col_idx_, values_;
  DeviceCsr view_;
};

}  // namespace spmmbench
