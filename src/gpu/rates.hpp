#pragma once
// How fast a device is at the three things that sparse products are made of.

#include "spmmbench/device.hpp"

namespace spmmbench {

// 0: not known.
struct DeviceRates {
  double copy_bytes_per_second = 0;    // large copy within the device, read plus written
  double gather_bytes_per_second = 0;  // whole rows of B at random places of the L2 cache
  double dense_flops_per_second = 0;   // fp16 tensor cores on a large product
};

// Measures them on a CUDA device. The dense rate needs cuBLAS: 0 without it.
double measure_gather(Device& device);
double measure_dense(Device& device);

}  // namespace spmmbench
