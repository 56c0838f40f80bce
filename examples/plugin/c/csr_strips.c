/* A plug-in in C: CSR on one CPU thread, a strip of C's columns at a time, so that the strip of a
 * row stays in registers or the first cache.
 *
 *   cmake -S . -B build && cmake --build build
 *   spmmbench run MATRIX -k './build/libcsr_strips.so:csr_strips?width=64' --precision fp32 */

#include <spmmbench/plugin_helpers.h>
#include <stdlib.h>

/* A's arrays stay where they are (SPMMBENCH_KEEPS_A), so this is all there is to prepare. */
struct spmmbench_prepared {
  spmmbench_csr a;
  int64_t width;
};

static spmmbench_status prepare(const spmmbench_kernel* kernel, const spmmbench_problem* problem,
                                const spmmbench_stages* stages, spmmbench_prepared** prepared) {
  (void)kernel, (void)stages;
  *prepared = malloc(sizeof **prepared);
  if (*prepared == NULL) return spmmbench_fail(SPMMBENCH_OUT_OF_MEMORY, "no memory for A");
  (*prepared)->a = *problem->a;
  (*prepared)->width = strtol(spmmbench_option_value(problem, "width", "32"), NULL, 10);
  return SPMMBENCH_OK;
}
static void destroy_prepared(spmmbench_prepared* prepared) { free(prepared); }

/* Nothing depends on the shape: each plan is the prepared A. */
static spmmbench_status bind(spmmbench_prepared* prepared, const spmmbench_shape* shape,
                             const spmmbench_stages* stages, spmmbench_plan** plan) {
  (void)shape, (void)stages;
  *plan = (spmmbench_plan*)prepared;
  return SPMMBENCH_OK;
}
static void destroy_plan(spmmbench_plan* plan) { (void)plan; }

static spmmbench_status launch(spmmbench_plan* plan, const spmmbench_dense* b,
                               const spmmbench_dense* c, void* stream) {
  const spmmbench_prepared* prepared = (const spmmbench_prepared*)plan;
  const int64_t* row_ptr = prepared->a.row_ptr;
  const int32_t* col_idx = prepared->a.col_idx;
  const float* values = prepared->a.values;
  (void)stream;
  for (int64_t begin = 0; begin < c->cols; begin += prepared->width) {
    const int64_t end = begin + prepared->width < c->cols ? begin + prepared->width : c->cols;
    for (int64_t row = 0; row < c->rows; ++row) {
      float* out = (float*)c->data + row * c->ld;
      for (int64_t j = begin; j < end; ++j) out[j] = 0; /* every element of C is written */
      for (int64_t entry = row_ptr[row]; entry < row_ptr[row + 1]; ++entry) {
        const float* in = (const float*)b->data + col_idx[entry] * b->ld;
        for (int64_t j = begin; j < end; ++j) out[j] += values[entry] * in[j];
      }
    }
  }
  return SPMMBENCH_OK;
}

static const spmmbench_option width = {sizeof width,      "width", "32", "columns of C at a time",
                                       SPMMBENCH_INTEGER, 1,       4096, NULL};
static const spmmbench_option* const options[] = {&width};

static const spmmbench_kernel csr_strips = {
    .size = sizeof csr_strips,
    .name = "csr_strips",
    .summary = "CSR on one CPU thread, a strip of columns at a time",
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
    .options = options,
    .option_count = 1,
    .prepare = prepare,
    .bind = bind,
    .launch = launch,
    .destroy_plan = destroy_plan,
    .destroy_prepared = destroy_prepared};

SPMMBENCH_PLUGIN("csr_strips", "1", &csr_strips)
