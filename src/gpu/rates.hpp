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

// Measure them on a CUDA device. The dense rate needs cuBLAS: 0 without it.
double measure_gather(Device& device);
double measure_dense(Device& device);
// Multiplications and additions of fp16 tensor cores per second, from registers alone. A product
// with cuBLAS reaches up to 1.6 times this rate on Hopper, whose wgmma it uses.
double measure_tensor_cores(Device& device);

}  // namespace spmmbench
