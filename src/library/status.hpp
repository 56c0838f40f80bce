#pragma once
// What the C interface says of an exception: a status, and a line for the user.

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

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

inline thread_local std::string last_error;  // of the last call of the thread that failed

inline spmmbench_status failed(spmmbench_status status, const char* message) noexcept {
  try {
    last_error = message;
  } catch (const std::bad_alloc&) {
    last_error.clear();
  }
  return status;
}

// Turns exceptions into a status, since none may cross the interface.
template <class Function>
spmmbench_status guarded(const Function& function) noexcept {
  try {
    function();
    return SPMMBENCH_OK;
  } catch (const std::bad_alloc& error) {
    return failed(status_of(error), "out of host memory");
  } catch (const std::length_error& error) {
    return failed(status_of(error), "out of host memory");
  } catch (const std::exception& error) {
    return failed(status_of(error), error.what());
  }
}

}  // namespace spmmbench
