/* The C interface to the gated half of a block-sparse feed-forward on a GPU of compute capability
 * 9.0:
 *
 *   y = silu(x gate^T) * (x up^T), silu(g) = g / (1 + exp(-g)), where gate and up are the 64 x 64
 *   tiles that have a nonzero
 *
 *   entry   const spmmbench_swiglu* swiglu = spmmbench_gating(SPMMBENCH_SWIGLU_VERSION);
 *   call    swiglu->multiply(&asked, stream);
 *
 * Sums are fp32, and y is rounded once. Structs, versions, statuses and types are as in plugin.h.
 * libspmmbench.so exports it beside spmmbench_kernels. Calls may be made from any thread. */
#ifndef SPMMBENCH_SWIGLU_H
#define SPMMBENCH_SWIGLU_H

#include "spmmbench/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPMMBENCH_SWIGLU_VERSION 1u

/* All arrays are on the GPU. Addresses are multiples of 16 bytes, as are the distances from one
 * token to the next, which are in elements. */
typedef struct spmmbench_swiglu_call {
  size_t size;
  int32_t type;    /* of x, tiles and y: SPMMBENCH_F16 or _BF16 */
  int64_t rows;    /* of gate and of up: a multiple of 128 */
  int64_t columns; /* of both: a multiple of 64 */
  int64_t tokens;
  const void* x; /* [tokens, columns] */
  int64_t x_distance;
  void* y; /* [tokens, rows] */
  int64_t y_distance;
  const void* tiles; /* [tile_count, 64, 64]: of gate and of up in any order, rows contiguous */
  int64_t tile_count;
  /* [rows / 128, 4]: the first of 128 rows of gate and up; its first step; its first step in up;
   * behind its last step. Gate and up have a step each at least. Fastest with most steps first. Not
   * checked. */
  const int32_t* pairs;
  /* [steps, 4]: the first of 64 columns; the tile of the upper 64 rows and of the lower, -1 where
   * there is none; 0. Not checked. */
  const int32_t* steps;
} spmmbench_swiglu_call;

typedef struct spmmbench_swiglu {
  size_t size;
  uint32_t version; /* SPMMBENCH_SWIGLU_VERSION as the library was compiled */
  /* Enqueues it on the cudaStream_t `stream` of the device that is current. SPMMBENCH_UNSUPPORTED:
   * the type, the multiple of rows or columns, or the GPU is none of those named.
   * SPMMBENCH_INVALID: another member is not as its comment says. */
  spmmbench_status (*multiply)(const spmmbench_swiglu_call* asked, void* stream);
  const char* (*last_error)(void); /* of the calling thread; never NULL */
} spmmbench_swiglu;

/* NULL where `version` is not the library's. */
SPMMBENCH_EXPORT const spmmbench_swiglu* spmmbench_gating(uint32_t version);

#ifdef __cplusplus
}
#endif

#endif
