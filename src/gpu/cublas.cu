#include "gpu/cublas.hpp"

#include <cuda_runtime.h>

#include <string>

#include "gpu/cuda_check.hpp"
#include "spmmbench/device.hpp"

namespace spmmbench {

void check_cublas(cublasStatus_t status, const char* function) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const cudaError_t cuda = cudaGetLastError();
  const char* text = SPMMBENCH_FUNCTION(cublas_library(), cublasGetStatusString)(status);
  const std::string message = std::string("cuBLAS: ") + function + ": " + text;
  if (status == CUBLAS_STATUS_ALLOC_FAILED) throw OutOfMemory(message);
  throw DeviceError(message, is_sticky(cuda));
}

GemmEx* gemm_ex() {
  static GemmEx* const found = reinterpret_cast<GemmEx*>(cublas_library().require("cublasGemmEx"));
  return found;
}

GemmBatchEx* gemm_batch_ex() {
  static GemmBatchEx* const found =
      reinterpret_cast<GemmBatchEx*>(cublas_library().require("cublasGemmStridedBatchedEx"));
  return found;
}

}  // namespace spmmbench
