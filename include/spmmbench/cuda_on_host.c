/* The CUDA runtime on a machine without a GPU, for trying the host code of a plug-in: device memory
 * is host memory, copies are made at once, and kernels are not run. Linked into the plug-in in
 * place of the CUDA runtime (-cudart none), so that a sanitizer sees every array that it allocates,
 * copies and frees. docs/extending.md has the commands.
 *
 * A function of the runtime that is missing here is an undefined symbol: define it beside. */
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

enum { kAlignment = 256 }; /* bytes, of device memory */

static cudaError_t allocate(void** out, size_t bytes) {
  *out = NULL;
  if (bytes == 0) return cudaSuccess;
  if (posix_memalign(out, kAlignment, bytes) != 0) return cudaErrorMemoryAllocation;
  memset(*out, 0xFF, bytes); /* nothing that host code may rely on */
  return cudaSuccess;
}
static cudaError_t copy(void* to, const void* from, size_t bytes) {
  if (bytes != 0) memcpy(to, from, bytes);
  return cudaSuccess;
}
static cudaError_t set(void* to, int value, size_t bytes) {
  if (bytes != 0) memset(to, value, bytes);
  return cudaSuccess;
}
/* A stream or an event: memory of its own, so that one that is not destroyed is a leak. */
static cudaError_t make_handle(void** out) {
  *out = malloc(1);
  return *out == NULL ? cudaErrorMemoryAllocation : cudaSuccess;
}
static cudaError_t free_handle(void* handle) {
  free(handle);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** out, size_t bytes) { return allocate(out, bytes); }
cudaError_t cudaMallocAsync(void** out, size_t bytes, cudaStream_t stream) {
  (void)stream;
  return allocate(out, bytes);
}
cudaError_t cudaMallocHost(void** out, size_t bytes) { return allocate(out, bytes); }
cudaError_t cudaHostAlloc(void** out, size_t bytes, unsigned flags) {
  (void)flags;
  return allocate(out, bytes);
}
cudaError_t cudaMallocManaged(void** out, size_t bytes, unsigned flags) {
  (void)flags;
  return allocate(out, bytes);
}
cudaError_t cudaFree(void* data) { return free_handle(data); }
cudaError_t cudaFreeHost(void* data) { return free_handle(data); }
cudaError_t cudaFreeAsync(void* data, cudaStream_t stream) {
  (void)stream;
  return free_handle(data);
}
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  *free_bytes = *total_bytes = (size_t)1 << 30;
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind) {
  (void)kind;
  return copy(to, from, bytes);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
  (void)kind, (void)stream;
  return copy(to, from, bytes);
}
cudaError_t cudaMemset(void* to, int value, size_t bytes) { return set(to, value, bytes); }
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  (void)stream;
  return set(to, value, bytes);
}

cudaError_t cudaStreamCreate(cudaStream_t* out) { return make_handle((void**)out); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned flags) {
  (void)flags;
  return make_handle((void**)out);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return free_handle(stream); }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  (void)stream;
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  (void)stream, (void)event, (void)flags;
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* out) { return make_handle((void**)out); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned flags) {
  (void)flags;
  return make_handle((void**)out);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) { return free_handle(event); }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  (void)event, (void)stream;
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  (void)event;
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to) {
  (void)from, (void)to;
  *ms = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize(void) { return cudaSuccess; }

cudaError_t cudaGetLastError(void) { return cudaSuccess; }
cudaError_t cudaPeekAtLastError(void) { return cudaSuccess; }
const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaSuccess ? "cudaSuccess" : "cudaError";
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess ? "no error" : "an error of the CUDA runtime on the host";
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; }
cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr attribute, int device) {
  (void)device;
  switch (attribute) { /* of an H200, as far as launches ask */
    case cudaDevAttrMultiProcessorCount: *value = 132; break;
    case cudaDevAttrComputeCapabilityMajor: *value = 9; break;
    case cudaDevAttrMaxThreadsPerBlock: *value = 1024; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = 48 << 10; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = 227 << 10; break;
    case cudaDevAttrWarpSize: *value = 32; break;
    default: *value = 0;
  }
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* function, enum cudaFuncAttribute attribute,
                                 int value) {
  (void)function, (void)attribute, (void)value;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                          int threads, size_t shared_bytes) {
  (void)function, (void)threads, (void)shared_bytes;
  *blocks = 1;
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             size_t shared_bytes, cudaStream_t stream) {
  (void)function, (void)grid, (void)block, (void)arguments, (void)shared_bytes, (void)stream;
  return cudaSuccess;
}
#if CUDART_VERSION >= 11080
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** arguments) {
  (void)config, (void)function, (void)arguments;
  return cudaSuccess;
}
#endif

/* What code that nvcc makes of kernels and of <<<>>> calls. */
void** __cudaRegisterFatBinary(void* binary) {
  static void* handle;
  (void)binary;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void** handle) { (void)handle; }
char __cudaInitModule(void** handle) {
  (void)handle;
  return 1;
}
void __cudaUnregisterFatBinary(void** handle) { (void)handle; }
void __cudaRegisterFunction(void** handle, const char* host, char* device, const char* name,
                            int threads, void* thread, void* block, void* block_dim, void* grid_dim,
                            int* warp) {
  (void)handle, (void)host, (void)device, (void)name, (void)threads, (void)thread, (void)block;
  (void)block_dim, (void)grid_dim, (void)warp;
}
void __cudaRegisterVar(void** handle, char* host, char* device, const char* name, int is_extern,
                       size_t bytes, int constant, int global) {
  (void)handle, (void)host, (void)device, (void)name, (void)is_extern, (void)bytes, (void)constant;
  (void)global;
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, void* stream) {
  (void)grid, (void)block, (void)shared_bytes, (void)stream;
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes,
                                       void* stream) {
  dim3 one = {1, 1, 1};
  *grid = *block = one;
  *shared_bytes = 0;
  *(void**)stream = NULL;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = (cudaKernel_t)function;
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t shared_bytes, cudaStream_t stream) {
  (void)kernel, (void)grid, (void)block, (void)arguments, (void)shared_bytes, (void)stream;
  return cudaSuccess;
}
