#pragma once
// What planted kernels have in common: they are found by name, and only in the test program.

#include <string>

#include "spmmbench/kernel.hpp"

namespace spmmbench {

inline KernelInfo planted_info(const std::string& name, DeviceKind device) {
  KernelInfo info;
  info.name = name;
  info.summary = "planted fault";
  info.source = "tests/faults";
  info.device = device;
  info.precisions = {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16};
  return info;
}

}  // namespace spmmbench
