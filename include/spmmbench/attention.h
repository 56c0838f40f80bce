/* The C interface to block-sparse causal attention on a GPU of compute capability 9.0:
 *
 *   out = softmax(scale * q k^T) v, over the keys that are no later than the query and lie in a
 *   block that a pattern keeps
 *
 *   entry   const spmmbench_attention* attention =
 *               spmmbench_attending(SPMMBENCH_ATTENTION_VERSION);
 *   call    attention->attend(&asked, stream);
 *
 * Structs, versions, statuses and types are as in plugin.h. libspmmbench.so exports it beside
 * spmmbench_kernels. Calls may be made from any thread. */
#ifndef SPMMBENCH_ATTENTION_H
#define SPMMBENCH_ATTENTION_H

#include "spmmbench/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPMMBENCH_ATTENTION_VERSION 1u

/* [tokens, heads, head_size] on the GPU. `token` and `head` are the elements from one to the next;
 * the vector of a head is contiguous. Addresses and distances are multiples of 16 bytes. */
typedef struct spmmbench_heads {
  void* data;
  int64_t token, head;
} spmmbench_heads;

typedef struct spmmbench_attention_call {
  size_t size;
  int32_t type;             /* of q, k, v and out: SPMMBENCH_F16 or _BF16 */
  int32_t head_size;        /* 128 */
  int32_t heads, key_heads; /* of q and out; of k and v, which divides it */
  int64_t tokens;           /* a multiple of `block` */
  double scale;             /* of scores, above 0 */
  spmmbench_heads q, k, v, out;
  int32_t block; /* tokens of a block: 64 or 128 */
  int32_t
      of_heads; /* 1: each head of q has rows of its own, head after head; 0: all have the same */
  /* On the GPU. Row i has the blocks of keys of block i of queries: counts[i] of them, at least
   * one, at columns[i * pitch]. Each is there once, none is later than i, and i itself, where it is
   * kept, is the first. Not checked. */
  const int32_t* counts;
  const int32_t* columns;
  int64_t pitch;
} spmmbench_attention_call;

typedef struct spmmbench_attention {
  size_t size;
  uint32_t version; /* SPMMBENCH_ATTENTION_VERSION as the library was compiled */
  /* Enqueues it on the cudaStream_t `stream` of the device that is current. SPMMBENCH_UNSUPPORTED:
   * the type, the size of heads or blocks, or the GPU is none of those named. SPMMBENCH_INVALID:
   * another member is not as its comment says. */
  spmmbench_status (*attend)(const spmmbench_attention_call* asked, void* stream);
  const char* (*last_error)(void); /* of the calling thread; never NULL */
} spmmbench_attention;

/* NULL where `version` is not the library's. */
SPMMBENCH_EXPORT const spmmbench_attention* spmmbench_attending(uint32_t version);

#ifdef __cplusplus
}
#endif

#endif
