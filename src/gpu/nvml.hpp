#pragma once
// The few NVML queries that the context of a run needs. libnvidia-ml.so.1 comes with the driver and
// is loaded at run time; without it every answer is empty.

#include <optional>
#include <string>

#include "spmmbench/device.hpp"

namespace spmmbench {

std::string nvml_driver_version();                     // "580.159.04"; empty when absent
ClockState nvml_clock_state(const std::string& uuid);  // uuid as in DeviceInfo

// Those that use the device for computation besides this one, which does; 0 where they are not
// seen.
int nvml_other_processes(const std::string& uuid);

// Whether a device's memory corrects errors, and whether the device is divided into instances.
struct DeviceModes {
  std::optional<bool> ecc, mig;
};
DeviceModes nvml_modes(const std::string& uuid);

}  // namespace spmmbench
