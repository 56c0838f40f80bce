/* What plug-ins have in common, in C99 and C++: errors, options, the entry. A plug-in that does
 * these itself needs spmmbench/plugin.h alone. */
#ifndef SPMMBENCH_PLUGIN_HELPERS_H
#define SPMMBENCH_PLUGIN_HELPERS_H

#include <stdio.h>
#include <string.h>

#include "spmmbench/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The last error of this thread; weak, so that all files of a plug-in have the same one. */
__attribute__((weak, visibility("hidden"))) __thread char spmmbench_message[256];

static inline const char* spmmbench_last_error(void) { return spmmbench_message; }

/* Keeps `message`, one line for the user, and returns `status`:
 *
 *   if (a->cols % 2 != 0) return spmmbench_fail(SPMMBENCH_UNSUPPORTED, "needs an even K"); */
static inline spmmbench_status spmmbench_fail(spmmbench_status status, const char* message) {
  snprintf(spmmbench_message, sizeof spmmbench_message, "%s", message);
  return status;
}

/* The value of an option: what the user gave, else `default_value`. */
static inline const char* spmmbench_option_value(const spmmbench_problem* problem, const char* name,
                                                 const char* default_value) {
  const char* const* at = problem->options;
  for (; at != NULL && at[0] != NULL; at += 2)
    if (strcmp(at[0], name) == 0) return at[1];
  return default_value;
}

#ifdef __CUDACC__
/* What a call of the CUDA runtime returned, as a status:
 *
 *   kernel<<<blocks, threads, 0, stream>>>(...);
 *   return spmmbench_cuda_status(cudaGetLastError()); */
static inline spmmbench_status spmmbench_cuda_status(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return SPMMBENCH_OK;
    case cudaErrorMemoryAllocation:
      return spmmbench_fail(SPMMBENCH_OUT_OF_MEMORY, cudaGetErrorString(error));
    case cudaErrorIllegalAddress: /* after these the context is unusable */
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorHardwareStackError:
    case cudaErrorAssert:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
      return spmmbench_fail(SPMMBENCH_DEVICE_LOST, cudaGetErrorString(error));
    default: return spmmbench_fail(SPMMBENCH_FAILED, cudaGetErrorString(error));
  }
}
#endif

/* The entry of a plug-in that uses spmmbench_fail, after its kernels:
 *
 *   SPMMBENCH_PLUGIN("mine", "1.0", &my_kernel, &my_other_kernel) */
#define SPMMBENCH_PLUGIN(name, version, ...)                                \
  const spmmbench_library* spmmbench_kernels(uint32_t abi_version) {        \
    static const spmmbench_kernel* const spmmbench_table[] = {__VA_ARGS__}; \
    static const spmmbench_library spmmbench_self = {                       \
        sizeof spmmbench_self,                                              \
        SPMMBENCH_ABI_VERSION,                                              \
        name,                                                               \
        version,                                                            \
        spmmbench_table,                                                    \
        sizeof spmmbench_table / sizeof *spmmbench_table,                   \
        spmmbench_last_error};                                              \
    return abi_version == SPMMBENCH_ABI_VERSION ? &spmmbench_self : NULL;   \
  }

#ifdef __cplusplus
}
#endif

#endif
