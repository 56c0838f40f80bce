#pragma once
// The rates of a device. Predictions divide amounts of work by them.

#include "gpu/rates.hpp"
#include "spmmbench/device.hpp"

namespace spmmbench {

struct DeviceModel {
  double memory_bytes_per_us = 0;  // large copy, read plus written
  double gather_bytes_per_us = 0;  // whole rows of B from the L2 cache
  double dense_flops_per_us = 0;   // fp16 tensor cores on a large product
  double l2_bytes = 0;
  double sm_count = 0;
};

// A rate that is not known (0), as while no device is open, is taken from an H200: copy 4.31 TB/s,
// gather 9.3 TB/s and dense 760 TFLOP/s (docs/methodology.md). The last two are scaled from its 132
// multiprocessors to this device's number of them.
DeviceModel device_model(const DeviceInfo& device, const DeviceRates& rates);

}  // namespace spmmbench
