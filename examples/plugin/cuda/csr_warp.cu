// A plug-in in CUDA: CSR in fp16, one warp per row of C and 32 columns, sums in fp32.
//
//   cmake -S . -B build && cmake --build build
//   spmmbench run MATRIX -k ./build/libcsr_warp.so

#include <cuda_fp16.h>
#include <spmmbench/plugin.h>

#include <new>

namespace {

thread_local const char* message = "";

// What a CUDA call says, as a status. Errors after which the context is gone are told apart.
spmmbench_status status_of(cudaError_t error) {
  if (error == cudaSuccess) return SPMMBENCH_OK;
  message = cudaGetErrorString(error);
  if (error == cudaErrorMemoryAllocation) return SPMMBENCH_OUT_OF_MEMORY;
  const bool lost = error == cudaErrorIllegalAddress || error == cudaErrorLaunchFailure;
  return lost ? SPMMBENCH_DEVICE_LOST : SPMMBENCH_FAILED;
}

__global__ void csr_warp_kernel(const int* row_ptr, const int* col_idx, const __half* values,
                                int rows, const __half* b, long long ldb, float* c, long long ldc,
                                long long n) {
  const long long row = blockIdx.x * static_cast<long long>(blockDim.y) + threadIdx.y;
  const long long column = blockIdx.y * 32LL + threadIdx.x;
  if (row >= rows || column >= n) return;
  float sum = 0;
  for (int entry = row_ptr[row]; entry < row_ptr[row + 1]; ++entry)
    sum += __half2float(values[entry]) * __half2float(b[col_idx[entry] * ldb + column]);
  c[row * ldc + column] = sum;
}

}  // namespace

// spmmbench uploads A in the types that are asked for below, and keeps it (SPMMBENCH_KEEPS_A).
struct spmmbench_prepared {
  spmmbench_csr a;
};
struct spmmbench_plan {
  const spmmbench_csr* a;
};

namespace {

spmmbench_status prepare(const spmmbench_kernel*, const spmmbench_problem* problem,
                         const spmmbench_stages*, spmmbench_prepared** out) {
  *out = new (std::nothrow) spmmbench_prepared{*problem->a};
  return *out != nullptr ? SPMMBENCH_OK : SPMMBENCH_OUT_OF_MEMORY;
}

spmmbench_status bind(spmmbench_prepared* prepared, const spmmbench_shape*, const spmmbench_stages*,
                      spmmbench_plan** out) {
  *out = new (std::nothrow) spmmbench_plan{&prepared->a};
  return *out != nullptr ? SPMMBENCH_OK : SPMMBENCH_OUT_OF_MEMORY;
}

spmmbench_status launch(spmmbench_plan* plan, const spmmbench_dense* b, const spmmbench_dense* c,
                        void* stream) {
  const spmmbench_csr& a = *plan->a;
  if (a.rows == 0) return SPMMBENCH_OK;
  const dim3 threads(32, 8);
  const dim3 blocks(static_cast<unsigned>((a.rows + 7) / 8),
                    static_cast<unsigned>((c->cols + 31) / 32));
  csr_warp_kernel<<<blocks, threads, 0, static_cast<cudaStream_t>(stream)>>>(
      static_cast<const int*>(a.row_ptr), static_cast<const int*>(a.col_idx),
      static_cast<const __half*>(a.values), static_cast<int>(a.rows),
      static_cast<const __half*>(b->data), b->ld, static_cast<float*>(c->data), c->ld, c->cols);
  return status_of(cudaGetLastError());
}

void destroy_plan(spmmbench_plan* plan) { delete plan; }
void destroy_prepared(spmmbench_prepared* prepared) { delete prepared; }

spmmbench_kernel describe() {
  spmmbench_kernel kernel = {};
  kernel.size = sizeof kernel;
  kernel.name = "csr_warp";
  kernel.summary = "CSR, one warp per row and 32 columns";
  kernel.source = "examples/plugin";
  kernel.device = SPMMBENCH_CUDA;
  kernel.min_compute_capability = 80;
  kernel.accumulation = SPMMBENCH_SUMS_FP32;
  kernel.flags = SPMMBENCH_KEEPS_A;
  kernel.precisions = SPMMBENCH_SET(SPMMBENCH_FP16_IN);
  kernel.c_types = SPMMBENCH_SET(SPMMBENCH_F32);
  kernel.layouts = SPMMBENCH_SET(SPMMBENCH_ROW_MAJOR);
  kernel.a_memory = SPMMBENCH_SET(SPMMBENCH_CUDA);
  kernel.row_ptr_types = kernel.col_idx_types = SPMMBENCH_SET(SPMMBENCH_I32);
  kernel.a_value_types = SPMMBENCH_SET(SPMMBENCH_F16);
  kernel.data_alignment = kernel.pitch_alignment = sizeof(__half);
  kernel.n_multiple = 1;
  kernel.prepare = prepare;
  kernel.bind = bind;
  kernel.launch = launch;
  kernel.destroy_plan = destroy_plan;
  kernel.destroy_prepared = destroy_prepared;
  return kernel;
}

}  // namespace

const spmmbench_library* spmmbench_kernels(uint32_t abi_version) {
  static const spmmbench_kernel kernel = describe();
  static const spmmbench_kernel* const kernels[] = {&kernel};
  static const spmmbench_library library = {
      sizeof library, SPMMBENCH_ABI_VERSION, "csr_warp", "1", kernels, 1, [] { return message; }};
  return abi_version == SPMMBENCH_ABI_VERSION ? &library : nullptr;
}
