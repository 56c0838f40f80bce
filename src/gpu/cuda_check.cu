#include "gpu/cuda_check.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "spmmbench/device.hpp"

namespace spmmbench {

bool is_sticky(cudaError_t error) noexcept {
  constexpr int kContained = 226;  // cudaErrorContained, for which CUDA 12.4 has no name
  if (static_cast<int>(error) == kContained) return true;
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorMisalignedAddress:
    case cudaErrorHardwareStackError:
    case cudaErrorAssert:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorExternalDevice:
    case cudaErrorUnknown: return true;
    default: return false;
  }
}

void throw_cuda_error(cudaError_t error, const char* call, const char* file, int line) {
  (void)cudaGetLastError();
  std::string_view name = file;
  name.remove_prefix(name.find_last_of('/') + 1);
  const std::string message = fmt::format("{}:{}: {}: {} ({})", name, line, call,
                                          cudaGetErrorString(error), cudaGetErrorName(error));
  if (error == cudaErrorMemoryAllocation) throw OutOfMemory(message);
  throw DeviceError(message, is_sticky(error));
}

}  // namespace spmmbench
