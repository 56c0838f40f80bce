// A plug-in in CUDA: CSR in fp16, one warp per row of C and 32 columns, sums in fp32.
//
//   cmake -S . -B build && cmake --build build
//   spmmbench run MATRIX -k ./build/libcsr_warp.so

#include <cuda_fp16.h>
#include <spmmbench/plugin_helpers.h>

#include <new>

// spmmbench uploads A in the types that are asked for below, and keeps it (SPMMBENCH_KEEPS_A).
struct spmmbench_prepared {
  spmmbench_csr a;
};

static __global__ void multiply(spmmbench_csr a, spmmbench_dense b, spmmbench_dense c) {
  const auto* row_ptr = static_cast<const int*>(a.row_ptr);
  const auto* col_idx = static_cast<const int*>(a.col_idx);
  const auto* values = static_cast<const __half*>(a.values);
  const long long row = blockIdx.x * static_cast<long long>(blockDim.y) + threadIdx.y;
  const long long column = blockIdx.y * 32LL + threadIdx.x;
  if (row >= c.rows || column >= c.cols) return;
  const auto* in = static_cast<const __half*>(b.data) + column;
  float sum = 0;
  for (int entry = row_ptr[row]; entry < row_ptr[row + 1]; ++entry)
    sum += __half2float(values[entry]) * __half2float(in[col_idx[entry] * b.ld]);
  static_cast<float*>(c.data)[row * c.ld + column] = sum;
}

static spmmbench_status prepare(const spmmbench_kernel*, const spmmbench_problem* problem,
                                const spmmbench_stages*, spmmbench_prepared** prepared) {
  *prepared = new (std::nothrow) spmmbench_prepared{*problem->a};
  if (*prepared == nullptr) return spmmbench_fail(SPMMBENCH_OUT_OF_MEMORY, "no memory for A");
  return SPMMBENCH_OK;
}
static void destroy_prepared(spmmbench_prepared* prepared) { delete prepared; }

// Nothing depends on the shape: each plan is the prepared A.
static spmmbench_status bind(spmmbench_prepared* prepared, const spmmbench_shape*,
                             const spmmbench_stages*, spmmbench_plan** plan) {
  *plan = reinterpret_cast<spmmbench_plan*>(prepared);
  return SPMMBENCH_OK;
}
static void destroy_plan(spmmbench_plan*) {}

static spmmbench_status launch(spmmbench_plan* plan, const spmmbench_dense* b,
                               const spmmbench_dense* c, void* stream) {
  if (c->rows == 0) return SPMMBENCH_OK;
  const dim3 threads(32, 8);
  const dim3 blocks(static_cast<unsigned>((c->rows + 7) / 8),
                    static_cast<unsigned>((c->cols + 31) / 32));
  multiply<<<blocks, threads, 0, static_cast<cudaStream_t>(stream)>>>(
      reinterpret_cast<spmmbench_prepared*>(plan)->a, *b, *c);
  return spmmbench_cuda_status(cudaGetLastError());
}

static const spmmbench_kernel csr_warp = {.size = sizeof csr_warp,
                                          .name = "csr_warp",
                                          .summary = "CSR, one warp per row and 32 columns",
                                          .device = SPMMBENCH_CUDA,
                                          .min_compute_capability = 80,
                                          .accumulation = SPMMBENCH_SUMS_FP32,
                                          .flags = SPMMBENCH_KEEPS_A,
                                          .precisions = SPMMBENCH_SET(SPMMBENCH_FP16_IN),
                                          .c_types = SPMMBENCH_SET(SPMMBENCH_F32),
                                          .layouts = SPMMBENCH_SET(SPMMBENCH_ROW_MAJOR),
                                          .a_memory = SPMMBENCH_SET(SPMMBENCH_CUDA),
                                          .row_ptr_types = SPMMBENCH_SET(SPMMBENCH_I32),
                                          .col_idx_types = SPMMBENCH_SET(SPMMBENCH_I32),
                                          .a_value_types = SPMMBENCH_SET(SPMMBENCH_F16),
                                          .prepare = prepare,
                                          .bind = bind,
                                          .launch = launch,
                                          .destroy_plan = destroy_plan,
                                          .destroy_prepared = destroy_prepared};

SPMMBENCH_PLUGIN("csr_warp", "1", &csr_warp)
