/* Calls every CUDA kernel of libspmmbench.so as a network on the GPU would: A as CSR in device
 * memory, several plans of one prepared A, B and C at addresses that are multiples of 16 bytes and
 * no more, on a stream of its own. All values are small integers, so each element of C must be
 * exact. Prints a line per kernel; the exit code says how many were wrong. */

#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spmmbench/plugin.h"

enum { ROWS = 2003, COLS = 1501, PER_ROW = 12, NNZ = ROWS * PER_ROW, SHIFT = 16 };
enum { HALF_NAN = 0x7E00 };

static const spmmbench_library* library;

static void cuda(cudaError_t error) {
  if (error == cudaSuccess) return;
  printf("%s\n", cudaGetErrorString(error));
  exit(100);
}

static void* on_device(const void* host, size_t bytes) {
  char* data;
  cuda(cudaMalloc((void**)&data, bytes + SHIFT));
  if (host != NULL) cuda(cudaMemcpy(data + SHIFT, host, bytes, cudaMemcpyHostToDevice));
  return data + SHIFT;
}

static uint16_t half_of(int value) { /* of -3 to 3 */
  static const uint16_t bits[] = {0, 0x3C00, 0x4000, 0x4200};
  return (uint16_t)(bits[abs(value)] | (value < 0 ? 0x8000 : 0));
}

static int a_at(int row, int entry) { return (row + 3 * entry) % 5 - 2; }
static int b_at(int row, int column) { return (5 * row + column) % 7 - 3; }

/* Bytes behind C must stay as they are: C is all that the caller owns. */
enum { GUARD = 64 };

/* A column of B and one of C, both contiguous, whose lengths are no multiples of 16 bytes: the one
 * case in which ld may be anything. 0: right, or not supported. */
static int try_vector(const spmmbench_kernel* kernel, spmmbench_prepared* prepared,
                      const int32_t* col_idx, cudaStream_t stream) {
  spmmbench_shape shape = {sizeof shape, 1,   SPMMBENCH_COL_MAJOR, SPMMBENCH_F32, 0, 0, NULL,
                           NULL,         NULL};
  spmmbench_dense b = {sizeof b, NULL, COLS, 1, COLS, SPMMBENCH_COL_MAJOR, SPMMBENCH_F16, 0};
  spmmbench_dense c = {sizeof c, NULL, ROWS, 1, ROWS, SPMMBENCH_COL_MAJOR, SPMMBENCH_F32, 0};
  spmmbench_plan* plan = NULL;
  uint16_t host_b[COLS];
  float host_c[ROWS];
  unsigned char guard[GUARD];
  int i, k, wrong = 0;
  const spmmbench_status status = kernel->bind(prepared, &shape, NULL, &plan);
  if (status != SPMMBENCH_OK) {
    printf("  a vector: status %d, %s\n", (int)status, library->last_error());
    return status == SPMMBENCH_UNSUPPORTED ? 0 : 1;
  }
  for (i = 0; i < COLS; ++i) host_b[i] = half_of(b_at(i, 0));
  b.data = on_device(host_b, sizeof host_b);
  c.data = on_device(NULL, sizeof host_c + GUARD);
  cuda(cudaMemset(c.data, 0xFF, sizeof host_c + GUARD));
  cuda(cudaDeviceSynchronize());
  if (kernel->inspect_b != NULL) kernel->inspect_b(plan, &b, NULL);
  if (kernel->launch(plan, &b, &c, stream) != SPMMBENCH_OK) {
    printf("  a vector: %s\n", library->last_error());
    wrong = 1;
  }
  cuda(cudaStreamSynchronize(stream));
  cuda(cudaMemcpy(host_c, c.data, sizeof host_c, cudaMemcpyDeviceToHost));
  cuda(cudaMemcpy(guard, (char*)c.data + sizeof host_c, GUARD, cudaMemcpyDeviceToHost));
  for (i = 0; i < ROWS; ++i) {
    int sum = 0;
    for (k = 0; k < PER_ROW; ++k) sum += a_at(i, k) * b_at(col_idx[i * PER_ROW + k], 0);
    if (host_c[i] != (float)sum && wrong++ == 0)
      printf("  a vector: C(%d) is %g: expected %d\n", i, host_c[i], sum);
  }
  for (i = 0; i < GUARD; ++i)
    if (guard[i] != 0xFF && wrong++ == 0) printf("  a vector: byte %d behind C was written\n", i);
  kernel->destroy_plan(plan);
  cuda(cudaFree((char*)b.data - SHIFT));
  cuda(cudaFree((char*)c.data - SHIFT));
  return wrong != 0;
}

/* Lines of B and C have ld elements, of which the last ld - n are NaN in B. 0: right, or not
 * supported. */
static int try_shape(const spmmbench_kernel* kernel, spmmbench_prepared* prepared, int n, int ld,
                     const int32_t* col_idx, cudaStream_t stream) {
  spmmbench_shape shape = {sizeof shape, n,   SPMMBENCH_ROW_MAJOR, SPMMBENCH_F32, 0, 0, NULL,
                           NULL,         NULL};
  spmmbench_dense b = {sizeof b, NULL, COLS, n, ld, SPMMBENCH_ROW_MAJOR, SPMMBENCH_F16, 0};
  spmmbench_dense c = {sizeof c, NULL, ROWS, n, ld, SPMMBENCH_ROW_MAJOR, SPMMBENCH_F32, 0};
  spmmbench_plan* plan = NULL;
  uint16_t* host_b = malloc(sizeof *host_b * COLS * ld);
  float* host_c = malloc(sizeof *host_c * ROWS * ld);
  int i, j, k, wrong = 0;
  const spmmbench_status status = kernel->bind(prepared, &shape, NULL, &plan);
  if (status != SPMMBENCH_OK) {
    printf("  n=%d: status %d, %s\n", n, (int)status, library->last_error());
    free(host_b), free(host_c);
    return status == SPMMBENCH_UNSUPPORTED ? 0 : 1;
  }
  for (i = 0; i < COLS; ++i)
    for (j = 0; j < ld; ++j) host_b[i * ld + j] = j < n ? half_of(b_at(i, j)) : HALF_NAN;
  b.data = on_device(host_b, sizeof *host_b * COLS * ld);
  c.data = on_device(NULL, sizeof *host_c * ROWS * ld);
  cuda(cudaMemset(c.data, 0xFF, sizeof *host_c * ROWS * ld));
  cuda(cudaDeviceSynchronize());
  if (kernel->inspect_b != NULL) kernel->inspect_b(plan, &b, NULL);
  b.ld = (int64_t)1 << 31; /* 4 GiB from line to line */
  if (kernel->launch(plan, &b, &c, stream) != SPMMBENCH_INVALID) {
    printf("  n=%d: lines of 4 GiB are not refused\n", n);
    wrong = 1;
  }
  b.ld = ld;
  if (kernel->launch(plan, &b, &c, stream) != SPMMBENCH_OK) {
    printf("  n=%d: %s\n", n, library->last_error());
    wrong = 1;
  }
  cuda(cudaStreamSynchronize(stream));
  cuda(cudaMemcpy(host_c, c.data, sizeof *host_c * ROWS * ld, cudaMemcpyDeviceToHost));
  for (i = 0; i < ROWS; ++i)
    for (j = 0; j < n; ++j) {
      int sum = 0;
      for (k = 0; k < PER_ROW; ++k) sum += a_at(i, k) * b_at(col_idx[i * PER_ROW + k], j);
      if (host_c[i * ld + j] != (float)sum && wrong++ == 0)
        printf("  n=%d: C(%d, %d) is %g: expected %d\n", n, i, j, host_c[i * ld + j], sum);
    }
  kernel->destroy_plan(plan);
  cuda(cudaFree((char*)b.data - SHIFT));
  cuda(cudaFree((char*)c.data - SHIFT));
  free(host_b), free(host_c);
  return wrong != 0;
}

/* UNCHECKED: whatever was bound last, a first launch on another stream waits for it, so that it is
 * refused in a capture until the plan is settled. 0: right. */
static int try_unchecked(const spmmbench_kernel* kernel, spmmbench_problem problem,
                         cudaStream_t stream) {
  static const int columns[] = {8, 32};
  spmmbench_prepared* prepared = NULL;
  int i, wrong = 0;
  problem.flags = SPMMBENCH_UNCHECKED;
  if (kernel->prepare(kernel, &problem, NULL, &prepared) != SPMMBENCH_OK) return 1;
  for (i = 0; i < 2; ++i) {
    const int n = columns[i];
    spmmbench_shape shape = {sizeof shape, n,   SPMMBENCH_ROW_MAJOR, SPMMBENCH_F32, 0, 0, NULL,
                             NULL,         NULL};
    spmmbench_dense b = {sizeof b, NULL, COLS, n, n, SPMMBENCH_ROW_MAJOR, SPMMBENCH_F16, 0};
    spmmbench_dense c = {sizeof c, NULL, ROWS, n, n, SPMMBENCH_ROW_MAJOR, SPMMBENCH_F32, 0};
    spmmbench_plan* plan = NULL;
    cudaGraph_t graph;
    spmmbench_status captured;
    b.data = on_device(NULL, sizeof(uint16_t) * COLS * n);
    c.data = on_device(NULL, sizeof(float) * ROWS * n);
    if (kernel->bind(prepared, &shape, NULL, &plan) != SPMMBENCH_OK) return 1;
    cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    captured = kernel->launch(plan, &b, &c, stream);
    cuda(cudaStreamEndCapture(stream, &graph));
    cuda(cudaGraphDestroy(graph));
    if (captured != SPMMBENCH_INVALID && ++wrong)
      printf("  n=%d: captured while preparation may run\n", n);
    if (kernel->launch(plan, &b, &c, stream) != SPMMBENCH_OK && ++wrong)
      printf("  n=%d: %s\n", n, library->last_error());
    cuda(cudaStreamSynchronize(stream));
    kernel->destroy_plan(plan);
    cuda(cudaFree((char*)b.data - SHIFT));
    cuda(cudaFree((char*)c.data - SHIFT));
  }
  kernel->destroy_prepared(prepared);
  return wrong != 0;
}

int main(void) {
  static int32_t row_ptr[ROWS + 1], col_idx[NNZ];
  static uint16_t values[NNZ];
  static const struct { int n, ld; } shapes[] = {{1, 8}, {32, 32}, {100, 104}, {100, 128}};
  spmmbench_csr a = {sizeof a, ROWS, COLS,           NNZ,           NULL,          NULL,
                     NULL,     NULL, SPMMBENCH_CUDA, SPMMBENCH_I32, SPMMBENCH_I32, SPMMBENCH_F16,
                     NULL,     0};
  spmmbench_problem problem = {sizeof problem, &a, NULL, SPMMBENCH_FP16_IN, 0};
  cudaStream_t stream;
  int i, k, wrong = 0;
  size_t at;
  for (i = 0; i < ROWS; ++i) {
    row_ptr[i + 1] = (i + 1) * PER_ROW;
    for (k = 0; k < PER_ROW; ++k) { /* ascending, a different stride in each row */
      col_idx[i * PER_ROW + k] = (i * 7) % 400 + k * (1 + i % 90);
      values[i * PER_ROW + k] = half_of(a_at(i, k));
    }
  }
  cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  a.row_ptr = on_device(row_ptr, sizeof row_ptr);
  a.col_idx = on_device(col_idx, sizeof col_idx);
  a.values = on_device(values, sizeof values);
  library = spmmbench_kernels(SPMMBENCH_ABI_VERSION);
  if (library == NULL) return 100;
  for (at = 0; at < library->kernel_count; ++at) {
    const spmmbench_kernel* kernel = library->kernels[at];
    spmmbench_prepared* prepared = NULL;
    if (kernel->device != SPMMBENCH_CUDA ||
        (kernel->precisions & SPMMBENCH_SET(SPMMBENCH_FP16_IN)) == 0)
      continue;
    printf("%s\n", kernel->name);
    const spmmbench_status status = kernel->prepare(kernel, &problem, NULL, &prepared);
    if (status != SPMMBENCH_OK) {
      printf("  prepare: status %d, %s\n", (int)status, library->last_error());
      wrong += status != SPMMBENCH_UNSUPPORTED;
      continue;
    }
    for (i = 0; i < (int)(sizeof shapes / sizeof *shapes); ++i)
      wrong += try_shape(kernel, prepared, shapes[i].n, shapes[i].ld, col_idx, stream);
    wrong += try_vector(kernel, prepared, col_idx, stream);
    kernel->destroy_prepared(prepared);
    if (strcmp(kernel->name, "csr_merge") == 0) wrong += try_unchecked(kernel, problem, stream);
  }
  printf("%d wrong\n", wrong);
  return wrong;
}
