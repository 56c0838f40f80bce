/* A plug-in in C: CSR on one CPU thread, a strip of C's columns at a time, so that the strip of a
 * row stays in registers or the first cache.
 *
 *   cmake -S . -B build && cmake --build build
 *   spmmbench run MATRIX -k './build/libcsr_strips.so:csr_strips?width=64' --precision fp32 */

#include <spmmbench/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __thread char message[200]; /* of the last error of this thread */

static const char* last_error(void) { return message; }

static spmmbench_status fail(spmmbench_status status, const char* what) {
  snprintf(message, sizeof message, "%s", what);
  return status;
}

/* A's arrays stay where they are (SPMMBENCH_KEEPS_A), so this is all there is to prepare. */
struct spmmbench_prepared {
  spmmbench_csr a;
  int64_t width;
};
struct spmmbench_plan {
  const spmmbench_prepared* prepared;
};

static spmmbench_status prepare(const spmmbench_kernel* kernel, const spmmbench_problem* problem,
                                const spmmbench_stages* stages, spmmbench_prepared** out) {
  const char* const* option = problem->options;
  (void)kernel, (void)stages;
  *out = malloc(sizeof **out);
  if (*out == NULL) return fail(SPMMBENCH_OUT_OF_MEMORY, "no memory for the operand");
  (*out)->a = *problem->a;
  (*out)->width = 32;
  for (; option != NULL && option[0] != NULL; option += 2)
    if (strcmp(option[0], "width") == 0) (*out)->width = strtol(option[1], NULL, 10);
  return SPMMBENCH_OK;
}

static spmmbench_status bind(spmmbench_prepared* prepared, const spmmbench_shape* shape,
                             const spmmbench_stages* stages, spmmbench_plan** out) {
  (void)shape, (void)stages;
  *out = malloc(sizeof **out);
  if (*out == NULL) return fail(SPMMBENCH_OUT_OF_MEMORY, "no memory for the plan");
  (*out)->prepared = prepared;
  return SPMMBENCH_OK;
}

static spmmbench_status launch(spmmbench_plan* plan, const spmmbench_dense* b,
                               const spmmbench_dense* c, void* stream) {
  const spmmbench_csr* a = &plan->prepared->a;
  const int64_t* row_ptr = a->row_ptr;
  const int32_t* col_idx = a->col_idx;
  const float* values = a->values;
  (void)stream;
  for (int64_t begin = 0; begin < c->cols; begin += plan->prepared->width) {
    const int64_t rest = c->cols - begin;
    const int64_t width = rest < plan->prepared->width ? rest : plan->prepared->width;
    for (int64_t row = 0; row < a->rows; ++row) {
      float* out = (float*)c->data + row * c->ld + begin;
      memset(out, 0, (size_t)width * sizeof *out); /* every element of C is written */
      for (int64_t entry = row_ptr[row]; entry < row_ptr[row + 1]; ++entry) {
        const float* in = (const float*)b->data + col_idx[entry] * b->ld + begin;
        for (int64_t j = 0; j < width; ++j) out[j] += values[entry] * in[j];
      }
    }
  }
  return SPMMBENCH_OK;
}

static void destroy_plan(spmmbench_plan* plan) { free(plan); }
static void destroy_prepared(spmmbench_prepared* prepared) { free(prepared); }

static const spmmbench_option width = {.size = sizeof width,
                                       .name = "width",
                                       .default_value = "32",
                                       .help = "columns of C at a time",
                                       .type = SPMMBENCH_INTEGER,
                                       .minimum = 1,
                                       .maximum = 4096};
static const spmmbench_option* const options[] = {&width};

static const spmmbench_kernel csr_strips = {
    .size = sizeof csr_strips,
    .name = "csr_strips",
    .summary = "CSR on one CPU thread, a strip of columns at a time",
    .source = "examples/plugin",
    .device = SPMMBENCH_HOST,
    .accumulation = SPMMBENCH_SUMS_FP32,
    .flags = SPMMBENCH_KEEPS_A,
    .precisions = SPMMBENCH_SET(SPMMBENCH_FP32_IN) | SPMMBENCH_SET(SPMMBENCH_TF32_IN),
    .c_types = SPMMBENCH_SET(SPMMBENCH_F32),
    .layouts = SPMMBENCH_SET(SPMMBENCH_ROW_MAJOR),
    .a_memory = SPMMBENCH_SET(SPMMBENCH_HOST),
    .row_ptr_types = SPMMBENCH_SET(SPMMBENCH_I64),
    .col_idx_types = SPMMBENCH_SET(SPMMBENCH_I32),
    .a_value_types = SPMMBENCH_SET(SPMMBENCH_F32),
    .data_alignment = sizeof(float),
    .pitch_alignment = 1,
    .n_multiple = 1,
    .options = options,
    .option_count = 1,
    .prepare = prepare,
    .bind = bind,
    .launch = launch,
    .destroy_plan = destroy_plan,
    .destroy_prepared = destroy_prepared};
static const spmmbench_kernel* const kernels[] = {&csr_strips};
static const spmmbench_library library = {
    sizeof library, SPMMBENCH_ABI_VERSION, "csr_strips", "1", kernels, 1, last_error};

const spmmbench_library* spmmbench_kernels(uint32_t abi_version) {
  return abi_version == SPMMBENCH_ABI_VERSION ? &library : NULL;
}
