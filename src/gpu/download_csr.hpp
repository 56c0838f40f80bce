#pragma once

#include <mutex>

#include "spmmbench/device.hpp"
#include "spmmbench/device_csr.hpp"
#include "spmmbench/matrix.hpp"

namespace spmmbench {

// A as CSR on the host, of what the device has. Throws DeviceError.
CsrMatrix download(const DeviceCsr& a, Device& device);

// A that lies on the device alone, for what reads it on the host.
class DownloadedCsr final : public LazyCsr {
 public:
  // Both outlive this. Threads may call get() at the same time.
  DownloadedCsr(const DeviceCsr& a, Device& device) : a_(a), device_(device) {}
  const CsrMatrix& get() override {
    std::call_once(once_, [this] { copy_ = download(a_, device_); });
    return copy_;
  }

 private:
  const DeviceCsr& a_;
  Device& device_;
  std::once_flag once_;
  CsrMatrix copy_;
};

}  // namespace spmmbench
