/* Measures a function of its own with libspmmbench.so, and what must be refused. Prints what
 * differs; the exit code says how much. */

#include "spmmbench/measure.h"

#include <stdio.h>
#include <string.h>

enum { ROWS = 3, COLS = 4, NNZ = 6, N = 5 };

static const int32_t row_ptr[ROWS + 1] = {0, 2, 2, 6};
static const int32_t col_idx[NNZ] = {0, 3, 0, 1, 2, 3};
static float values[NNZ] = {0.5f, -1, 2, 3, 0.25f, -4};

static int faults;

static void expect(int holds, const char* what, const char* told) {
  if (holds) return;
  ++faults;
  printf("not so: %s (%s)\n", what, told);
}

/* `self`: the values of A. */
static spmmbench_status multiply(void* self, const spmmbench_dense* b, const spmmbench_dense* c,
                                 void* stream) {
  const float* a = self;
  const float* from = b->data;
  float* to = c->data;
  int64_t i, j;
  (void)stream;
  for (i = 0; i < c->rows; ++i)
    for (j = 0; j < c->cols; ++j) {
      float sum = 0;
      int32_t e;
      for (e = row_ptr[i]; e < row_ptr[i + 1]; ++e) sum += a[e] * from[col_idx[e] * b->ld + j];
      to[i * c->ld + j] = sum;
    }
  return SPMMBENCH_OK;
}

static spmmbench_status fails(void* self, const spmmbench_dense* b, const spmmbench_dense* c,
                              void* stream) {
  (void)self, (void)b, (void)c, (void)stream;
  return SPMMBENCH_FAILED;
}

static const char* reason(void) { return "out of ink"; }

int main(void) {
  const spmmbench_measure* measure = spmmbench_measuring(SPMMBENCH_MEASURE_VERSION);
  float wrong_values[NNZ];
  spmmbench_csr a = {0};
  spmmbench_shape shape = {0};
  spmmbench_case asked = {0};
  spmmbench_product product = {0};
  spmmbench_bench* bench = NULL;
  const char* row = "";
  if (measure == NULL || spmmbench_measuring(SPMMBENCH_MEASURE_VERSION + 1) != NULL) {
    printf("not so: the library has this version and no other\n");
    return 1;
  }
  a.size = sizeof a;
  a.rows = ROWS;
  a.cols = COLS;
  a.nnz = NNZ;
  a.row_ptr = row_ptr;
  a.col_idx = col_idx;
  a.values = values;
  a.row_ptr_type = a.col_idx_type = SPMMBENCH_I32;
  shape.size = sizeof shape;
  shape.n = N;
  asked.size = sizeof asked;
  asked.matrix = "small";
  asked.a = &a;
  asked.shape = &shape;
  asked.seed = 1;
  asked.min_samples = asked.max_samples = 3;
  asked.max_seconds = 9;
  product.size = sizeof product;
  product.name = "mine";
  product.self = values;
  product.launch = multiply;

  expect(measure->open(&asked, &bench) == SPMMBENCH_OK, "opened", measure->last_error());
  expect(measure->run(bench, &product, &row) == SPMMBENCH_OK, "measured", measure->last_error());
  expect(strstr(row, "\"kernel\":\"mine\"") != NULL && strstr(row, "\"status\":\"ok\"") != NULL,
         "the row of a right product", row);
  memcpy(wrong_values, values, sizeof values);
  wrong_values[4] = 0;
  product.self = wrong_values;
  expect(measure->run(bench, &product, &row) == SPMMBENCH_OK, "measured", measure->last_error());
  expect(strstr(row, "\"status\":\"wrong\"") != NULL, "the row of a wrong product", row);
  product.launch = fails;
  product.last_error = reason;
  expect(measure->run(bench, &product, &row) == SPMMBENCH_OK, "measured", measure->last_error());
  expect(strstr(row, "\"status\":\"failed\"") != NULL && strstr(row, "out of ink") != NULL,
         "the row of a product that fails", row);

  product.launch = NULL;
  expect(measure->run(bench, &product, &row) == SPMMBENCH_INVALID &&
             strstr(measure->last_error(), "spmmbench_product.launch is NULL") != NULL,
         "a product without a launch is refused", measure->last_error());
  measure->close(bench);
  measure->close(NULL);
  asked.max_samples = 2;
  expect(measure->open(&asked, &bench) == SPMMBENCH_INVALID &&
             strstr(measure->last_error(), "max_samples") != NULL,
         "limits that contradict each other are refused", measure->last_error());
  a.size = 8;
  asked.max_samples = 3;
  expect(measure->open(&asked, &bench) == SPMMBENCH_INVALID &&
             strstr(measure->last_error(), "spmmbench_csr.size is 8") != NULL,
         "a struct that is too small is refused", measure->last_error());
  return faults;
}
