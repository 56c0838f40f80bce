#pragma once
// The rates of a device that predictions divide by.

#include "spmmbench/device.hpp"

namespace spmmbench {

struct DeviceModel {
  double memory_bytes_per_us = 0;  // large copy, read plus written
  double gather_bytes_per_us = 0;  // whole rows of B from the L2 cache
  double dense_flops_per_us = 0;   // fp16 tensor cores on a large product
  double l2_bytes = 0;
  double sm_count = 0;
};

// Rates per multiprocessor as measured on an H200 (132 of them: gather 8.8 TB/s, dense 760 TFLOP/s;
// docs/methodology.md), times the device's own number of them. `copy_bytes_per_second` is what this
// device was measured at; 0 stands for the H200's 4.31 TB/s while no device is open.
DeviceModel device_model(const DeviceInfo& device, double copy_bytes_per_second);

}  // namespace spmmbench
