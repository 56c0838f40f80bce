// A plug-in for the tests: kernels for a GPU that copy A there, whose host code is right or has one
// fault. Nothing runs on a GPU: this file has no device code.

#include <cuda_runtime_api.h>

#include <cstring>

#include "spmmbench/plugin_helpers.h"

struct spmmbench_prepared {
  void* columns = nullptr;
};

namespace {

bool is(const spmmbench_kernel* kernel, const char* name) {
  return std::strcmp(kernel->name, name) == 0;
}

spmmbench_status prepare(const spmmbench_kernel* kernel, const spmmbench_problem* problem,
                         const spmmbench_stages*, spmmbench_prepared** out) {
  const spmmbench_csr& a = *problem->a;
  const std::size_t bytes = a.nnz * sizeof(int);
  auto* prepared = new spmmbench_prepared;
  if (bytes > 0) {
    cudaMalloc(&prepared->columns, bytes - (is(kernel, "too_small") ? sizeof(int) : 0));
    cudaMemcpy(prepared->columns, a.col_idx, bytes, cudaMemcpyHostToDevice);
  }
  if (is(kernel, "loses")) prepared->columns = nullptr;
  *out = prepared;
  return SPMMBENCH_OK;
}
void destroy_prepared(spmmbench_prepared* prepared) {
  cudaFree(prepared->columns);
  delete prepared;
}
spmmbench_status bind(spmmbench_prepared* prepared, const spmmbench_shape*, const spmmbench_stages*,
                      spmmbench_plan** out) {
  *out = reinterpret_cast<spmmbench_plan*>(prepared);
  return SPMMBENCH_OK;
}
void destroy_plan(spmmbench_plan*) {}
spmmbench_status launch(spmmbench_plan*, const spmmbench_dense*, const spmmbench_dense*, void*) {
  return SPMMBENCH_OK;
}

spmmbench_kernel named(const char* name) {
  spmmbench_kernel kernel{};
  kernel.size = sizeof kernel;
  kernel.name = name;
  kernel.summary = "copies the columns of A";
  kernel.device = SPMMBENCH_CUDA;
  kernel.accumulation = SPMMBENCH_SUMS_FP32;
  kernel.precisions = SPMMBENCH_SET(SPMMBENCH_FP32_IN);
  kernel.c_types = SPMMBENCH_SET(SPMMBENCH_F32);
  kernel.layouts = SPMMBENCH_SET(SPMMBENCH_ROW_MAJOR);
  kernel.a_memory = SPMMBENCH_SET(SPMMBENCH_HOST);
  kernel.row_ptr_types = SPMMBENCH_SET(SPMMBENCH_I32);
  kernel.col_idx_types = SPMMBENCH_SET(SPMMBENCH_I32);
  kernel.a_value_types = SPMMBENCH_SET(SPMMBENCH_F32);
  kernel.prepare = prepare;
  kernel.bind = bind;
  kernel.launch = launch;
  kernel.destroy_plan = destroy_plan;
  kernel.destroy_prepared = destroy_prepared;
  return kernel;
}
const spmmbench_kernel right = named("right"), too_small = named("too_small"),
                       loses = named("loses");

}  // namespace

SPMMBENCH_PLUGIN("host_code", "1", &right, &too_small, &loses)
