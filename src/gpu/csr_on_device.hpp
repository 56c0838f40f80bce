#pragma once
// A sparse matrix in the memory of a device, which holds it.

#include <cstddef>
#include <utility>

#include "core/steady_seconds.hpp"
#include "gpu/upload_values.hpp"
#include "spmmbench/device.hpp"
#include "spmmbench/device_csr.hpp"
#include "spmmbench/matrix.hpp"

namespace spmmbench {

class CsrOnDevice {
 public:
  // Takes over arrays that lie on the device, as DeviceCsr describes them.
  CsrOnDevice(std::int64_t rows, std::int64_t cols, std::int64_t nnz, ElementType value_type,
              Buffer row_ptr, Buffer col_idx, Buffer values)
      : row_ptr_(std::move(row_ptr)),
        col_idx_(std::move(col_idx)),
        values_(std::move(values)),
        view_{rows,
              cols,
              nnz,
              row_ptr_.as<std::int64_t>(),
              col_idx_.as<std::int32_t>(),
              values_.data(),
              value_type,
              0,
              1,
              nullptr} {}

  // A copy. The values of `a` are rounded to `precision` already. Throws DeviceError.
  CsrOnDevice(const CsrMatrix& a, Precision precision, Device& device)
      : CsrOnDevice(a, precision, device, steady_seconds()) {}

  const DeviceCsr& view() const { return view_; }
  void* values() const { return values_.data(); }
  std::size_t bytes() const { return sum_of_bytes(row_ptr_, col_idx_, values_, block_scales_); }

 private:
  CsrOnDevice(const CsrMatrix& a, Precision precision, Device& device, double start)
      : CsrOnDevice(a.rows, a.cols, a.nnz(), storage_type(precision), device.upload(a.row_ptr),
                    device.upload(a.col_idx), upload_values(device, a, storage_type(precision))) {
    view_.scale = a.scale;
    if (!a.block_scales.empty()) {
      block_scales_ = device.upload(a.block_scales);
      view_.block_scales = block_scales_.as<float>();
    }
    view_.upload_ms = (steady_seconds() - start) * 1e3;
  }

  Buffer row_ptr_, col_idx_, values_, block_scales_;
  DeviceCsr view_;
};

}  // namespace spmmbench
