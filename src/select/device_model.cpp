#include "select/device_model.hpp"

namespace spmmbench {

DeviceModel device_model(const DeviceInfo& device, const DeviceRates& rates) {
  constexpr double kH200Sms = 132;
  constexpr DeviceRates kH200 = {.copy_bytes_per_second = 4.31e12,
                                 .gather_bytes_per_second = 9.3e12,
                                 .dense_flops_per_second = 7.6e14};
  const auto sms = static_cast<double>(device.sm_count);
  const auto per_us = [](double measured, double otherwise) {
    return (measured > 0 ? measured : otherwise) * 1e-6;
  };
  const double scale = sms / kH200Sms;
  return {.memory_bytes_per_us = per_us(rates.copy_bytes_per_second, kH200.copy_bytes_per_second),
          .gather_bytes_per_us =
              per_us(rates.gather_bytes_per_second, kH200.gather_bytes_per_second * scale),
          .dense_flops_per_us =
              per_us(rates.dense_flops_per_second, kH200.dense_flops_per_second * scale),
          .l2_bytes = static_cast<double>(device.l2_bytes),
          .sm_count = sms};
}

}  // namespace spmmbench
