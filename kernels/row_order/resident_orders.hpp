#pragma once
// Row orders of a matrix on the device that stay there.

#include <string>

#include "spmmbench/device.hpp"
#include "spmmbench/device_csr.hpp"
#include "spmmbench/reordering.hpp"
#include "spmmbench/shared_parts.hpp"

namespace spmmbench {

// Natural, `match` and `degree` are made on the device, any other order on the host.
class ResidentOrders {
 public:
  // `host` and the device outlive this.
  ResidentOrders(RowOrders* host, Device& device) : host_(host), device_(device) {}

  // Of `a`, the same matrix in every call: an int32 for each row; null: natural. Stage: "reorder".
  const Buffer& get(const DeviceCsr& a, const std::string& spec, StageTimer& stages);

 private:
  Buffer make(const DeviceCsr& a, const std::string& spec, StageTimer& cost);

  RowOrders* host_;
  Device& device_;
  SharedParts<std::string, Buffer> orders_;
};

}  // namespace spmmbench
