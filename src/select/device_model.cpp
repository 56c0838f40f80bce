#include "select/device_model.hpp"

namespace spmmbench {

DeviceModel device_model(const DeviceInfo& device, double copy_bytes_per_second) {
  constexpr double kH200Sms = 132;
  constexpr double kH200GatherBytesPerUs = 8.8e6, kH200FlopsPerUs = 7.6e8;
  constexpr double kH200CopyBytesPerSecond = 4.31e12;
  const double copy = copy_bytes_per_second > 0 ? copy_bytes_per_second : kH200CopyBytesPerSecond;
  const auto sms = static_cast<double>(device.sm_count);
  return {.memory_bytes_per_us = copy * 1e-6,
          .gather_bytes_per_us = kH200GatherBytesPerUs * sms / kH200Sms,
          .dense_flops_per_us = kH200FlopsPerUs * sms / kH200Sms,
          .l2_bytes = static_cast<double>(device.l2_bytes),
          .sm_count = sms};
}

}  // namespace spmmbench
