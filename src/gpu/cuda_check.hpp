#pragma once
// Every CUDA runtime call goes through one of these. A failed call becomes a DeviceError that names
// the call, the file and the line, and the runtime's last error is cleared so that it cannot be
// reported a second time by an unrelated call.

#include <cuda_runtime_api.h>

namespace spmmbench {

// True for errors after which the context is unusable: every later call in this process fails.
bool is_sticky(cudaError_t error) noexcept;

[[noreturn]] void throw_cuda_error(cudaError_t error, const char* call, const char* file, int line);

// For destructors: a failure there is either the consequence of an error already thrown or
// harmless.
inline void ignore_cuda_error(cudaError_t error) noexcept {
  if (error != cudaSuccess) (void)cudaGetLastError();
}

}  // namespace spmmbench

#define SPMMBENCH_CUDA(call)                                                     \
  do {                                                                           \
    const cudaError_t spmmbench_error = (call);                                  \
    if (spmmbench_error != cudaSuccess)                                          \
      ::spmmbench::throw_cuda_error(spmmbench_error, #call, __FILE__, __LINE__); \
  } while (false)

#define SPMMBENCH_CUDA_NOEXCEPT(call) ::spmmbench::ignore_cuda_error(call)

// After every kernel<<<...>>>: a bad launch configuration shows here, a fault at the next
// synchronisation.
#define SPMMBENCH_CUDA_LAUNCHED() SPMMBENCH_CUDA(cudaGetLastError())
