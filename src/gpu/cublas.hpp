#pragma once
// Calls of cuBLAS, which is loaded by the first of them. A failure becomes a DeviceError that names
// the function.

#include <cublas_v2.h>

#include "gpu/vendor_libraries.hpp"

namespace spmmbench {

void check_cublas(cublasStatus_t status, const char* function);

#define SPMMBENCH_CUBLAS(function, ...) \
  ::spmmbench::check_cublas(            \
      SPMMBENCH_FUNCTION(::spmmbench::cublas_library(), function)(__VA_ARGS__), #function)

// Functions of the library whose names cublas_v2.h overloads: cublasGemmEx and
// cublasGemmStridedBatchedEx, whose strides are in elements.
using GemmEx = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n,
                              int k, const void* alpha, const void* a, cudaDataType a_type, int lda,
                              const void* b, cudaDataType b_type, int ldb, const void* beta,
                              void* c, cudaDataType c_type, int ldc, cublasComputeType_t,
                              cublasGemmAlgo_t);
GemmEx* gemm_ex();

using GemmBatchEx = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m,
                                   int n, int k, const void* alpha, const void* a,
                                   cudaDataType a_type, int lda, long long stride_a, const void* b,
                                   cudaDataType b_type, int ldb, long long stride_b,
                                   const void* beta, void* c, cudaDataType c_type, int ldc,
                                   long long stride_c, int count, cublasComputeType_t,
                                   cublasGemmAlgo_t);
GemmBatchEx* gemm_batch_ex();

}  // namespace spmmbench
