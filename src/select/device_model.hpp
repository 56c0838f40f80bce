#pragma once
// The rates of a device. Predictions divide amounts of work by them.

#include "spmmbench/device.hpp"

namespace spmmbench {

struct DeviceModel {
  double memory_bytes_per_us = 0;  // large copy, read plus written
  double gather_bytes_per_us = 0;  // whole rows of B from the L2 cache
  double dense_flops_per_us = 0;   // fp16 tensor cores on a large product
  double l2_bytes = 0;
  double sm_count = 0;
};

// The rates of gathers and dense products were measured on an H200 (8.8 TB/s and 760 TFLOP/s on 132
// multiprocessors; docs/methodology.md) and are scaled to this device's number of multiprocessors.
// `copy_bytes_per_second` was measured on this device; 0, while no device is open, stands for the
// H200's 4.31 TB/s.
DeviceModel device_model(const DeviceInfo& device, double copy_bytes_per_second);

}  // namespace spmmbench
