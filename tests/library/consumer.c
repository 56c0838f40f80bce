/* Calls libspmmbench.so as a program of somebody else would: the CPU kernel on a small product, and
 * what must be refused. Prints what differs; the exit code says how much. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spmmbench/attention.h"
#include "spmmbench/swiglu.h"

enum { ROWS = 3, COLS = 4, NNZ = 6, N = 5 };

static const spmmbench_library* library;
static int faults;

static void expect(int holds, const char* what) {
  if (holds) return;
  ++faults;
  printf("not so: %s (last error: %s)\n", what, library == NULL ? "" : library->last_error());
}

static void expect_refusal(spmmbench_status status, spmmbench_status expected, const char* words) {
  if (status == expected && strstr(library->last_error(), words) != NULL) return;
  ++faults;
  printf("status %d, %s: expected %d, %s\n", (int)status, library->last_error(), (int)expected,
         words);
}

static const spmmbench_kernel* find(const char* name) {
  size_t i;
  for (i = 0; i < library->kernel_count; ++i)
    if (strcmp(library->kernels[i]->name, name) == 0) return library->kernels[i];
  printf("no kernel %s\n", name);
  exit(1);
}

static void add_stage(void* context, const char* stage, double milliseconds) {
  if (strcmp(stage, "build") == 0 && milliseconds >= 0) ++*(int*)context;
}

/* A stage that asks the library in its turn. */
typedef struct nested_call {
  const spmmbench_kernel* kernel;
  const spmmbench_problem* problem;
  spmmbench_status status;
} nested_call;

static void prepare_again(void* context, const char* stage, double milliseconds) {
  nested_call* call = context;
  spmmbench_prepared* prepared = NULL;
  (void)stage, (void)milliseconds;
  call->status = call->kernel->prepare(call->kernel, call->problem, NULL, &prepared);
  call->kernel->destroy_prepared(prepared);
}

/* Row 1 is empty; the columns of row 2 do not ascend. */
static const int64_t row_ptr[ROWS + 1] = {0, 3, 3, 6};
static const int64_t col_idx[NNZ] = {0, 1, 3, 3, 0, 2};
static const float values[NNZ] = {1, 2, 3, 4, 5, 6};
static const float dense_a[ROWS][COLS] = {{1, 2, 0, 3}, {0, 0, 0, 0}, {5, 0, 6, 4}};
static float b[COLS * N], c[ROWS * N];

static spmmbench_csr a = {
    sizeof a, ROWS,           COLS,          NNZ,           row_ptr,       col_idx, values,
    NULL,     SPMMBENCH_HOST, SPMMBENCH_I64, SPMMBENCH_I64, SPMMBENCH_F32, NULL,    0};
static spmmbench_problem problem = {sizeof problem, &a, NULL, SPMMBENCH_FP32_IN, 0};
static spmmbench_shape shape = {sizeof shape, N,   SPMMBENCH_ROW_MAJOR, SPMMBENCH_F32, 0, 0, NULL,
                                NULL,         NULL};
static spmmbench_dense b_view = {sizeof b_view, b, COLS, N, N, SPMMBENCH_ROW_MAJOR,
                                 SPMMBENCH_F32, 0};
static spmmbench_dense c_view = {sizeof c_view, c, ROWS, N, N, SPMMBENCH_ROW_MAJOR,
                                 SPMMBENCH_F32, 0};

static spmmbench_prepared* prepare_and_see_stages(const spmmbench_kernel* kernel) {
  spmmbench_prepared *prepared = NULL, *other = NULL;
  int stages_seen = 0;
  nested_call nested = {NULL, &problem, SPMMBENCH_FAILED};
  spmmbench_stages stages = {sizeof stages, NULL, add_stage};
  stages.context = &stages_seen;
  expect(kernel->prepare(kernel, &problem, &stages, &prepared) == SPMMBENCH_OK, "prepared");
  expect(stages_seen > 0, "the stage build was reported");
  nested.kernel = kernel;
  stages.context = &nested;
  stages.add = prepare_again;
  expect(kernel->prepare(kernel, &problem, &stages, &other) == SPMMBENCH_OK &&
             nested.status == SPMMBENCH_OK,
         "a stage may call the library");
  kernel->destroy_prepared(other);
  return prepared;
}

static void expect_product(const spmmbench_kernel* kernel, spmmbench_plan* plan) {
  int i, j, k;
  for (i = 0; i < COLS * N; ++i) b[i] = (float)(i % 7) - 3;
  for (i = 0; i < ROWS * N; ++i) c[i] = NAN;
  b_view.size = SPMMBENCH_DENSE_SIZE_1;
  expect(kernel->launch(plan, &b_view, &c_view, NULL) == SPMMBENCH_OK, "launched");
  b_view.size = sizeof b_view;
  for (i = 0; i < ROWS; ++i)
    for (j = 0; j < N; ++j) {
      float sum = 0;
      for (k = 0; k < COLS; ++k) sum += dense_a[i][k] * b[k * N + j];
      expect(c[i * N + j] == sum, "C = A * B");
    }
}

/* Twice transposed A is itself, also when what it was made of is no more. */
static void expect_transposes(const spmmbench_kernel* kernel, spmmbench_prepared* prepared) {
  static float of_rows[ROWS * N], of_cols[COLS * N];
  spmmbench_dense from = {sizeof from, of_rows, ROWS, N, N, SPMMBENCH_ROW_MAJOR, SPMMBENCH_F32, 0};
  spmmbench_dense to = {sizeof to, of_cols, COLS, N, N, SPMMBENCH_ROW_MAJOR, SPMMBENCH_F32, 0};
  spmmbench_prepared *transposed = NULL, *again = NULL;
  spmmbench_plan *plan = NULL, *plan_again = NULL;
  int i, j, k;
  expect_refusal(kernel->transpose(NULL, NULL, &transposed), SPMMBENCH_INVALID, "prepared is NULL");
  expect_refusal(kernel->transpose(prepared, NULL, NULL), SPMMBENCH_INVALID, "transposed is NULL");
  expect(kernel->transpose(prepared, NULL, &transposed) == SPMMBENCH_OK, "transposed");
  expect(kernel->transpose(transposed, NULL, &again) == SPMMBENCH_OK, "transposed again");
  expect(kernel->bind(transposed, &shape, NULL, &plan) == SPMMBENCH_OK, "bound");
  for (i = 0; i < ROWS * N; ++i) of_rows[i] = (float)(i % 5) - 2;
  expect(kernel->launch(plan, &from, &to, NULL) == SPMMBENCH_OK, "launched");
  for (i = 0; i < COLS; ++i)
    for (j = 0; j < N; ++j) {
      float sum = 0;
      for (k = 0; k < ROWS; ++k) sum += dense_a[k][i] * of_rows[k * N + j];
      expect(of_cols[i * N + j] == sum, "the product with the transpose");
    }
  kernel->destroy_plan(plan);
  kernel->destroy_prepared(transposed);
  expect(kernel->bind(again, &shape, NULL, &plan_again) == SPMMBENCH_OK, "bound");
  expect_product(kernel, plan_again);
  kernel->destroy_plan(plan_again);
  kernel->destroy_prepared(again);
}

static void expect_reports(const spmmbench_kernel* kernel, spmmbench_plan* plan) {
  spmmbench_report report = {sizeof report, 0, 0, NULL, NULL, 0, 0, 0, 0, 0, 0, 0};
  spmmbench_report again = {sizeof again, 0, 0, NULL, NULL, 0, 0, 0, 0, 0, 0, 0};
  expect(kernel->report(plan, &report) == SPMMBENCH_OK && report.device_bytes > 0 &&
             report.params != NULL && strcmp(report.params[0], "threads") == 0,
         "the plan reports bytes and threads");
  expect(kernel->report(plan, &again) == SPMMBENCH_OK && again.params != report.params &&
             strcmp(report.params[0], "threads") == 0,
         "an earlier report lives on");
  expect_refusal(kernel->report(NULL, &report), SPMMBENCH_INVALID, "plan is NULL");
}

static void expect_refused_problems(const spmmbench_kernel* kernel) {
  const char* const unknown_option[] = {"no_such", "1", NULL};
  const spmmbench_stages no_function = {sizeof no_function, NULL, NULL};
  spmmbench_prepared* prepared = NULL;
  problem.options = unknown_option;
  expect_refusal(kernel->supports(kernel, &problem, &shape, NULL), SPMMBENCH_INVALID, "no_such");
  problem.options = NULL;
  a.cols = 3;
  expect_refusal(kernel->supports(kernel, &problem, &shape, NULL), SPMMBENCH_INVALID,
                 "index 3 is not in [0, 2]: col_idx[2]");
  a.cols = COLS;
  a.values = NULL;
  expect_refusal(kernel->supports(kernel, &problem, &shape, NULL), SPMMBENCH_INVALID,
                 "values is NULL");
  a.values = values;
  expect_refusal(kernel->prepare(kernel, &problem, NULL, NULL), SPMMBENCH_INVALID,
                 "prepared is NULL");
  expect_refusal(kernel->prepare(kernel, &problem, &no_function, &prepared), SPMMBENCH_INVALID,
                 "spmmbench_stages.add is NULL");
}

static void expect_refused_shapes(const spmmbench_kernel* kernel, spmmbench_prepared* prepared) {
  spmmbench_plan* plan = NULL;
  shape.n = 0;
  expect_refusal(kernel->bind(prepared, &shape, NULL, &plan), SPMMBENCH_INVALID, "N = 0");
  shape.n = INT64_MAX;
  expect_refusal(kernel->bind(prepared, &shape, NULL, &plan), SPMMBENCH_INVALID,
                 "expected at most 1099511627776");
  shape.n = N;
  expect_refusal(kernel->bind(NULL, &shape, NULL, &plan), SPMMBENCH_INVALID, "prepared is NULL");
  expect_refusal(kernel->bind(prepared, &shape, NULL, NULL), SPMMBENCH_INVALID, "plan is NULL");
}

static void expect_refused_views(const spmmbench_kernel* kernel, spmmbench_plan* plan) {
  b_view.cols = N - 1;
  expect_refusal(kernel->launch(plan, &b_view, &c_view, NULL), SPMMBENCH_INVALID, "B is 4 x 4");
  b_view.cols = N;
  c_view.size = 8;
  expect_refusal(kernel->launch(plan, &b_view, &c_view, NULL), SPMMBENCH_INVALID,
                 "spmmbench_dense.size is 8");
  c_view.size = sizeof c_view;
  b_view.ld = (int64_t)1 << 62;
  expect_refusal(kernel->launch(plan, &b_view, &c_view, NULL), SPMMBENCH_INVALID,
                 "B.ld is 4611686018427387904: B would take 2^60 bytes or more");
  b_view.ld = N;
  b_view.data = NULL;
  expect_refusal(kernel->launch(plan, &b_view, &c_view, NULL), SPMMBENCH_INVALID, "B.data is NULL");
  expect_refusal(kernel->launch(NULL, &b_view, &c_view, NULL), SPMMBENCH_INVALID, "plan is NULL");
}

static void expect_refused_calls(void) {
  expect_refusal(spmmbench_attending(SPMMBENCH_ATTENTION_VERSION)->attend(NULL, NULL),
                 SPMMBENCH_INVALID, "spmmbench_attention_call: expected one, got NULL");
  expect_refusal(spmmbench_gating(SPMMBENCH_SWIGLU_VERSION)->multiply(NULL, NULL),
                 SPMMBENCH_INVALID, "spmmbench_swiglu_call: expected one, got NULL");
}

int main(void) {
  const spmmbench_kernel* kernel;
  spmmbench_prepared* prepared;
  spmmbench_plan *plan = NULL, *column_plan = NULL;
  uint64_t bytes = 0;

  expect(spmmbench_kernels(SPMMBENCH_ABI_VERSION + 1) == NULL, "another version gives NULL");
  library = spmmbench_kernels(SPMMBENCH_ABI_VERSION);
  if (library == NULL || library->size < sizeof *library) return 1;
  kernel = find("cpu_csr");
  expect(kernel->device == SPMMBENCH_HOST, "cpu_csr runs on the host");
  expect((kernel->precisions & SPMMBENCH_SET(SPMMBENCH_BF16_IN)) != 0, "cpu_csr takes bf16");

  expect(kernel->supports(kernel, &problem, &shape, &bytes) == SPMMBENCH_OK && bytes > 0,
         "supported, and says how many bytes");
  prepared = prepare_and_see_stages(kernel);
  expect(kernel->bind(prepared, &shape, NULL, &plan) == SPMMBENCH_OK, "bound");
  shape.layout = SPMMBENCH_COL_MAJOR;
  expect(kernel->bind(prepared, &shape, NULL, &column_plan) == SPMMBENCH_OK, "bound once more");
  shape.layout = SPMMBENCH_ROW_MAJOR;
  expect(kernel->settle(plan, NULL) == SPMMBENCH_OK, "settled");
  expect_product(kernel, plan);
  expect_reports(kernel, plan);
  expect_transposes(kernel, prepared);

  expect_refused_problems(kernel);
  expect_refused_shapes(kernel, prepared);
  expect_refused_views(kernel, plan);
  expect_refused_calls();

  kernel->destroy_plan(plan);
  kernel->destroy_plan(column_plan);
  kernel->destroy_plan(NULL);
  kernel->destroy_prepared(prepared);
  return faults;
}
