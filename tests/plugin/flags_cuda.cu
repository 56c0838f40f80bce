// A plug-in for the tests, on the GPU: kernels that work in their own way and say so, and kernels
// with one fault each. All are the same product in fp32, one thread per element of C.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "spmmbench/plugin.h"

struct spmmbench_prepared {
  const spmmbench_kernel* kernel;
  spmmbench_csr a;
  float* values = nullptr;  // of a kernel that takes new ones
};
struct spmmbench_plan {
  const spmmbench_prepared* prepared;
  cudaStream_t own = nullptr;
};

namespace {

thread_local const char* message = "";

__global__ void product(spmmbench_csr a, spmmbench_dense b, spmmbench_dense c, bool adds) {
  const long long element = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  const long long i = element / c.cols, j = element % c.cols;
  if (i >= a.rows) return;
  const auto* row_ptr = static_cast<const long long*>(a.row_ptr);
  const auto* col_idx = static_cast<const int*>(a.col_idx);
  const auto* values = static_cast<const float*>(a.values);
  float sum = 0;
  for (long long e = row_ptr[i]; e < row_ptr[i + 1]; ++e)
    sum += values[e] * static_cast<const float*>(b.data)[col_idx[e] * b.ld + j];
  float* out = static_cast<float*>(c.data) + i * c.ld + j;
  if (adds) atomicAdd(out, sum);
  else *out = sum;
}

// What is zero stays so, where `keeps_zeros`.
__global__ void take(const float* values, long long count, bool keeps_zeros, float* kept) {
  const long long e = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (e < count && (!keeps_zeros || kept[e] != 0)) kept[e] = values[e];
}

__global__ void write_at(float* c, long long at) { c[at] = 1; }
__global__ void spin(volatile int* never) {
  while (*never == 0) {
  }
}
__global__ void trap() { asm("trap;"); }

bool is(const spmmbench_kernel* kernel, const char* name) {
  return std::strcmp(kernel->name, name) == 0;
}

bool has_a_on_both(const spmmbench_csr& a) {
  const spmmbench_csr* host = a.on_host;
  if (host == nullptr || host->memory != SPMMBENCH_HOST || host->nnz != a.nnz) return false;
  std::vector<float> copy(a.nnz);
  cudaMemcpy(copy.data(), a.values, a.nnz * sizeof(float), cudaMemcpyDeviceToHost);
  return std::memcmp(copy.data(), host->values, a.nnz * sizeof(float)) == 0;
}

// Values as the exact test has them: of few bits.
bool looks_exact(const spmmbench_csr& a) {
  std::vector<float> values(a.nnz);
  cudaMemcpy(values.data(), a.values, a.nnz * sizeof(float), cudaMemcpyDeviceToHost);
  for (const float value : values)
    if (std::ldexp(value, 13) != std::round(std::ldexp(value, 13))) return false;
  return true;
}

void take_values(const spmmbench_prepared& prepared, const void* values, bool keeps_zeros,
                 cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((prepared.a.nnz + 255) / 256);
  take<<<blocks, 256, 0, stream>>>(static_cast<const float*>(values), prepared.a.nnz, keeps_zeros,
                                   prepared.values);
}

// Copies A's values. "leaves_out" has zero in the place of the first one, but where it prepares for
// the exact test.
spmmbench_status copy_values(spmmbench_prepared& prepared) {
  const std::size_t bytes = prepared.a.nnz * sizeof(float);
  if (cudaMalloc(reinterpret_cast<void**>(&prepared.values), bytes) != cudaSuccess)
    return SPMMBENCH_FAILED;
  take_values(prepared, prepared.a.values, false, nullptr);
  if (is(prepared.kernel, "leaves_out") && !looks_exact(prepared.a))
    cudaMemset(prepared.values, 0, sizeof(float));
  return cudaDeviceSynchronize() == cudaSuccess ? SPMMBENCH_OK : SPMMBENCH_FAILED;
}

spmmbench_status replace_values(spmmbench_prepared* prepared, const void* values,
                                std::int32_t value_type, std::int32_t memory, void* stream) {
  if (value_type != SPMMBENCH_F32 || memory != SPMMBENCH_CUDA) return SPMMBENCH_FAILED;
  take_values(*prepared, values, is(prepared->kernel, "leaves_out"),
              static_cast<cudaStream_t>(stream));
  return cudaGetLastError() == cudaSuccess ? SPMMBENCH_OK : SPMMBENCH_FAILED;
}

spmmbench_status prepare(const spmmbench_kernel* kernel, const spmmbench_problem* problem,
                         const spmmbench_stages*, spmmbench_prepared** out) {
  if (is(kernel, "both") && !has_a_on_both(*problem->a)) return SPMMBENCH_FAILED;
  *out = new spmmbench_prepared{kernel, *problem->a};
  return kernel->replace_values == nullptr ? SPMMBENCH_OK : copy_values(**out);
}

spmmbench_status bind(spmmbench_prepared* prepared, const spmmbench_shape*, const spmmbench_stages*,
                      spmmbench_plan** out) {
  *out = new spmmbench_plan{prepared};
  cudaStreamCreateWithFlags(&(*out)->own, cudaStreamNonBlocking);
  return SPMMBENCH_OK;
}

spmmbench_status launch(spmmbench_plan* plan, const spmmbench_dense* b, const spmmbench_dense* c,
                        void* given) {
  const spmmbench_kernel* kernel = plan->prepared->kernel;
  spmmbench_csr a = plan->prepared->a;
  if (plan->prepared->values != nullptr) a.values = plan->prepared->values;
  auto* stream = static_cast<cudaStream_t>(given);
  if (is(kernel, "no_launch")) return SPMMBENCH_OK;
  if (is(kernel, "legacy")) stream = nullptr;
  if (is(kernel, "waits") || is(kernel, "own_stream")) stream = plan->own;
  auto* out = static_cast<float*>(c->data);
  const long long end = c->rows * c->ld;
  const auto blocks = static_cast<unsigned>((a.rows * c->cols + 255) / 256);
  product<<<blocks, 256, 0, stream>>>(a, *b, *c, is(kernel, "adds"));
  if (is(kernel, "beyond")) write_at<<<1, 1, 0, stream>>>(out, end + 3);
  if (is(kernel, "far")) write_at<<<1, 1, 0, stream>>>(out, end + (1LL << 40));
  if (is(kernel, "hang"))
    spin<<<1, 1, 0, stream>>>(static_cast<int*>(const_cast<void*>(a.row_ptr)));
  if (is(kernel, "trap")) trap<<<1, 1, 0, stream>>>();
  if (is(kernel, "waits")) cudaStreamSynchronize(stream);
  const cudaError_t error = cudaGetLastError();
  message = cudaGetErrorString(error);
  return error == cudaSuccess ? SPMMBENCH_OK : SPMMBENCH_FAILED;
}

void destroy_plan(spmmbench_plan* plan) {
  cudaStreamDestroy(plan->own);
  delete plan;
}
void destroy_prepared(spmmbench_prepared* prepared) {
  cudaFree(prepared->values);
  delete prepared;
}

std::vector<spmmbench_kernel> describe() {
  spmmbench_kernel model = {};
  model.size = sizeof model;
  model.summary = "for tests";
  model.source = "tests";
  model.device = SPMMBENCH_CUDA;
  model.precisions = SPMMBENCH_SET(SPMMBENCH_FP32_IN);
  model.c_types = SPMMBENCH_SET(SPMMBENCH_F32);
  model.layouts = SPMMBENCH_SET(SPMMBENCH_ROW_MAJOR);
  model.a_memory = SPMMBENCH_SET(SPMMBENCH_CUDA);
  model.row_ptr_types = SPMMBENCH_SET(SPMMBENCH_I64);
  model.col_idx_types = SPMMBENCH_SET(SPMMBENCH_I32);
  model.a_value_types = SPMMBENCH_SET(SPMMBENCH_F32);
  model.n_multiple = 1;
  model.prepare = prepare;
  model.bind = bind;
  model.launch = launch;
  model.destroy_plan = destroy_plan;
  model.destroy_prepared = destroy_prepared;
  std::vector<spmmbench_kernel> kernels;
  const auto add = [&](const char* name, unsigned flags = 0) {
    kernels.push_back(model);
    kernels.back().name = name;
    kernels.back().flags = SPMMBENCH_KEEPS_A | flags;
  };
  add("good");
  add("both");
  add("adds", SPMMBENCH_ADDS_TO_C);
  add("legacy", SPMMBENCH_IGNORES_STREAM);
  add("waits", SPMMBENCH_IGNORES_STREAM);
  for (const char* name : {"own_stream", "no_launch", "beyond", "far", "trap", "hang"}) add(name);
  for (const char* name : {"takes_values", "leaves_out"}) {
    add(name);
    kernels.back().replace_values = replace_values;
  }
  return kernels;
}

}  // namespace

extern "C" const spmmbench_library* spmmbench_kernels(uint32_t abi_version) {
  static const std::vector<spmmbench_kernel> kernels = describe();
  static const std::vector<const spmmbench_kernel*> pointers = [] {
    std::vector<const spmmbench_kernel*> out;
    for (const spmmbench_kernel& kernel : kernels) out.push_back(&kernel);
    return out;
  }();
  static const spmmbench_library library = {
      sizeof library,  SPMMBENCH_ABI_VERSION, "flags_cuda",          "1",
      pointers.data(), pointers.size(),       [] { return message; }};
  return abi_version == SPMMBENCH_ABI_VERSION ? &library : nullptr;
}
