#pragma once
// What the C interface says of an exception.

#include <exception>
#include <new>
#include <stdexcept>

#include "spmmbench/device.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/plugin.h"

namespace spmmbench {

inline spmmbench_status status_of(const std::exception& error) noexcept {
  if (dynamic_cast<const Unsupported*>(&error) != nullptr) return SPMMBENCH_UNSUPPORTED;
  if (dynamic_cast<const Error*>(&error) != nullptr) return SPMMBENCH_INVALID;
  if (dynamic_cast<const OutOfMemory*>(&error) != nullptr) return SPMMBENCH_OUT_OF_MEMORY;
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
      dynamic_cast<const std::length_error*>(&error) != nullptr)  // a vector beyond all memory
    return SPMMBENCH_OUT_OF_MEMORY;
  const auto* const of_device = dynamic_cast<const DeviceError*>(&error);
  return of_device != nullptr && of_device->device_lost() ? SPMMBENCH_DEVICE_LOST
                                                          : SPMMBENCH_FAILED;
}

}  // namespace spmmbench
