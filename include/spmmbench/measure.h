/* The C interface to the program's measuring: a product C[M,N] = A[M,K] * B[K,N] that the caller
 * brings as a function is verified and timed as `spmmbench run` does a kernel.
 *
 *   entry    const spmmbench_measure* measure = spmmbench_measuring(SPMMBENCH_MEASURE_VERSION);
 *   per case measure->open(&problem, &bench);         A, B, C and the reference of one case
 *   product  measure->run(bench, &product, &row);     a row of results, as JSON
 *   end      measure->close(bench);
 *
 * Structs, versions, statuses and ownership are as in plugin.h. libspmmbench.so exports it beside
 * spmmbench_kernels. A bench is used by one thread at a time. Times of benches that run at the same
 * time disturb each other. A bench on a GPU belongs to the device that is current in the calling
 * thread at `open`, which must be current at `run` and `close` too. */
#ifndef SPMMBENCH_MEASURE_H
#define SPMMBENCH_MEASURE_H

#include "spmmbench/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPMMBENCH_MEASURE_VERSION 1u

/* What all products of a bench have in common. */
typedef struct spmmbench_case {
  size_t size;
  const char* matrix;     /* A's name in the rows */
  const spmmbench_csr* a; /* on the host or on the GPU; read during `open` only; row_ids is NULL */
  int32_t precision;      /* SPMMBENCH_*_IN: A's values and B are rounded to it */
  const spmmbench_shape* shape;
  int32_t device; /* SPMMBENCH_HOST or _CUDA: where B and C lie and products run */
  int32_t packed; /* 1: lines of B and C follow each other without a gap, as most libraries make
                     them. 0: their distance is that which the program gives its kernels */
  uint64_t seed;  /* of B, whose values are the program's for the same seed */
  /* When sampling stops, for hot and cold times each: at `min_samples` whose noise (standard error
   * of the median over the median) is at most `noise`, at `max_samples`, or after `max_seconds`. */
  double noise;
  int32_t min_samples, max_samples; /* from 1; min_samples is at most max_samples */
  double max_seconds;               /* above 0 */
} spmmbench_case;

/* A product that the caller brings. Its functions return an spmmbench_status; where one is not
 * SPMMBENCH_OK, the row's reason is what last_error() returns then. */
typedef struct spmmbench_product {
  size_t size;
  const char* name;     /* the row's kernel */
  void* self;           /* the first argument of launch, take_c and with_values */
  int32_t accumulation; /* SPMMBENCH_SUMS_*: decides the error that is allowed */
  uint32_t flags;       /* 0 or SPMMBENCH_IGNORES_STREAM */
  /* C = A * B, enqueued on the cudaStream_t `stream`; on the host it is done on return. May be the
   * `launch` of an spmmbench_kernel, with a plan as `self`. It is called while a CUDA graph is
   * captured too; where it fails then, launches are enqueued one by one instead. */
  spmmbench_status (*launch)(void* self, const spmmbench_dense* b, const spmmbench_dense* c,
                             void* stream);
  /* NULL: launches write the `c` that they are given. Else they leave C in memory of their own;
   * this copies the C of the last launch to `c`, fills that memory with NaN, and is not timed. */
  spmmbench_status (*take_c)(void* self, const spmmbench_dense* c, void* stream);
  /* NULL: A keeps its values, and the B of the exact test has so few nonzeros that an element of C
   * is at most one product. Else this makes a product with other values of A, for the exact test:
   * `values` has nnz of them, in the order of the columns of each row, exact in every precision.
   * At SPMMBENCH_FP64_IN they are of type double, behind the same pointer.
   * `launch` gets *other as its first argument, and `release` frees it. */
  spmmbench_status (*with_values)(void* self, const float* values, void** other);
  void (*release)(void* other);
  const char* (*last_error)(void); /* of the calling thread; NULL: no reasons */
} spmmbench_product;

typedef struct spmmbench_bench spmmbench_bench; /* the library's own */

typedef struct spmmbench_measure {
  size_t size;
  uint32_t version; /* SPMMBENCH_MEASURE_VERSION as the library was compiled */
  /* Makes B, C and the fp64 reference. */
  spmmbench_status (*open)(const spmmbench_case* asked, spmmbench_bench** bench);
  /* Measures one product. *row: one object of `rows` in a result document (`spmmbench list schema`)
   * as one line of JSON, until the next `run` or `close` of this bench. A product that is wrong, or
   * fails, has a row that says so, and the status is SPMMBENCH_OK. */
  spmmbench_status (*run)(spmmbench_bench* bench, const spmmbench_product* product,
                          const char** row);
  void (*close)(spmmbench_bench* bench); /* NULL is allowed; frees B and C */
  const char* (*last_error)(void);       /* of `open` and `run` in the calling thread; never NULL */
} spmmbench_measure;

/* NULL where `version` is not the library's. */
SPMMBENCH_EXPORT const spmmbench_measure* spmmbench_measuring(uint32_t version);

#ifdef __cplusplus
}
#endif

#endif
