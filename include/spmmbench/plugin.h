/* The C interface to kernels that compute C[M,N] = A[M,K] * B[K,N], A sparse, B and C dense.
 *
 * It is used in both directions. A shared library that exports `spmmbench_kernels` is a plug-in:
 * `spmmbench run MATRIX -k ./libmine.so` verifies, times and reports its kernels. libspmmbench.so
 * exports the program's own kernels through the same table, for programs in C, Python, ...
 *
 *   entry     const spmmbench_library* library = spmmbench_kernels(SPMMBENCH_ABI_VERSION);
 *   once      kernel->prepare(kernel, &problem, NULL, &prepared);   A in the kernel's own form
 *   per shape kernel->bind(prepared, &shape, NULL, &plan);          one N, layout, type of C
 *   per call  kernel->launch(plan, &b, &c, stream);                 the only thing that is timed
 *   end       kernel->destroy_plan(plan); kernel->destroy_prepared(prepared);
 *
 * One prepared A may have any number of plans at a time; they are destroyed before it.
 *
 * Versions. A library that is asked for a version that it does not speak returns NULL. spmmbench
 * asks for its own, then for 1; libspmmbench.so speaks both. The side that makes a struct sets its
 * first member to the size with which it was compiled (`x.size = sizeof x`). Structs only grow, at
 * their end. The reader of a struct reads no more bytes than `size` says. It answers
 * SPMMBENCH_INVALID if the struct is too small for the version. What version 2 has added is marked
 * so.
 *
 * Errors. Functions return an spmmbench_status. After any but SPMMBENCH_OK, last_error() returns
 * one line for the user about the last call of the calling thread. No C++ exception may leave a
 * function.
 *
 * Threads. Two threads must not use the same prepared A or the same plan at the same time. There is
 * one exception: different plans of one prepared A may be launched at the same time. Everything
 * else may run at the same time. A plan has one workspace, so its launches must not overlap on the
 * device either: they belong on one stream, or on streams that wait for each other.
 *
 * Devices. A CUDA kernel uses the device that is current in the calling thread at `prepare`. The
 * same device must be current at `bind`, `launch` and `destroy_*`. Device pointers belong to its
 * primary context (the CUDA runtime's). Only `launch` is given a stream: data that the other
 * functions read on the device must be complete when they are called, and data that they write is
 * complete when they return. (What is enqueued on the legacy default stream counts as complete for
 * libspmmbench, whose own stream follows that one.)
 *
 * Ownership. Neither side frees memory of the other. Arguments are only read, and only until the
 * function returns, unless said otherwise. What a library returns (descriptions, strings) stays
 * valid until the program ends or, where said so, until the object is destroyed. */
#ifndef SPMMBENCH_PLUGIN_H
#define SPMMBENCH_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SPMMBENCH_ABI_VERSION 2u

#define SPMMBENCH_EXPORT __attribute__((visibility("default")))

typedef int32_t spmmbench_status;
enum {
  SPMMBENCH_OK = 0,
  SPMMBENCH_UNSUPPORTED = 1,   /* the kernel does not do this: the case is skipped, with the reason.
                                  Any function may say so, `launch` too */
  SPMMBENCH_INVALID = 2,       /* wrong arguments: sizes, pointers, alignment, options */
  SPMMBENCH_OUT_OF_MEMORY = 3, /* host or device */
  SPMMBENCH_DEVICE_LOST = 4,   /* the CUDA context is unusable, such as after an illegal address */
  SPMMBENCH_FAILED = 5         /* anything else */
};

/* Where memory lies, and what a kernel runs on. */
enum { SPMMBENCH_HOST = 0, SPMMBENCH_CUDA = 1 };

/* What lies in an array. */
enum {
  SPMMBENCH_F32 = 0,
  SPMMBENCH_F16 = 1,  /* IEEE binary16 */
  SPMMBENCH_BF16 = 2, /* bfloat16 */
  SPMMBENCH_F64 = 3,
  SPMMBENCH_E4M3 = 4, /* 8 bits, of which 4 are exponent and 3 fraction (OCP E4M3, without
                         infinity); not of C */
  SPMMBENCH_E5M2 = 5, /* 8 bits, of which 5 are exponent and 2 fraction (OCP E5M2); not of C */
  SPMMBENCH_I32 = 16,
  SPMMBENCH_I64 = 17
};

/* The type that the values of A and B are rounded to. tf32 is stored as SPMMBENCH_F32 whose low 13
 * bits of the fraction are zero. In B they need not be zero; a kernel may then truncate or round.
 * SPMMBENCH_FP64_IN is multiplied and added in fp64, and has values of A, B and C of SPMMBENCH_F64.
 * SPMMBENCH_FP8_*_IN have a scale of A and one of B (spmmbench_csr.scale, spmmbench_dense.scale).
 */
enum {
  SPMMBENCH_FP32_IN = 0,
  SPMMBENCH_TF32_IN = 1,
  SPMMBENCH_FP16_IN = 2,
  SPMMBENCH_BF16_IN = 3,
  SPMMBENCH_FP64_IN = 4,
  SPMMBENCH_FP8_E4M3_IN = 5,
  SPMMBENCH_FP8_E5M2_IN = 6,
  SPMMBENCH_FP8_E4M3_BLOCK_IN = 7 /* blocks have scales, which these structs lack: refused */
};

/* Of B and C: element (i, j) lies at data[i * ld + j] (row major) or data[j * ld + i]. */
enum { SPMMBENCH_ROW_MAJOR = 0, SPMMBENCH_COL_MAJOR = 1 };

/* How sums are rounded, which decides the error that is allowed. At SPMMBENCH_FP32_IN it is always
 * SPMMBENCH_SUMS_FP32, and at SPMMBENCH_FP64_IN the same in fp64. */
enum {
  SPMMBENCH_SUMS_FP32 = 0,        /* products and sums in IEEE fp32, in any order */
  SPMMBENCH_SUMS_TENSOR_CORE = 1, /* tensor cores with fp32 accumulators */
  SPMMBENCH_SUMS_FP16 = 2         /* any sum is rounded to fp16, tensor cores included */
};

/* A set of the values above: SPMMBENCH_SET(SPMMBENCH_F32) | SPMMBENCH_SET(SPMMBENCH_F16). */
#define SPMMBENCH_SET(value) (UINT32_C(1) << (value))

/* Flags of a kernel. */
enum {
  SPMMBENCH_BINARY_A = 1 << 0,    /* takes every stored entry as 1 and reads no values */
  SPMMBENCH_SQUARE_ONLY = 1 << 1, /* needs M = K */
  SPMMBENCH_ADDS_TO_C = 1 << 2, /* C must be zero before a launch. spmmbench zeroes it, and the time
                                   of that counts in the kernel's; the metric zero_c_us is its
                                   share */
  SPMMBENCH_IGNORES_STREAM = 1 << 3, /* works on the legacy default stream, or returns only when all
                                        is done, whatever `stream` is. spmmbench then times it by
                                        the host's clock, from an idle device to an idle one */
  SPMMBENCH_KEEPS_A = 1 << 4,        /* plans read A's arrays: they stay as they are until
                                        destroy_prepared. Without it, until prepare returns */
  SPMMBENCH_ROW_IDS = 1 << 5,        /* honours spmmbench_csr.row_ids */
  SPMMBENCH_VENDOR = 1 << 6,         /* a baseline: the product of a vendor's library */
  SPMMBENCH_PACKED_ROWS = 1 << 7,    /* version 2. Lines of B and C follow each other without a gap:
                                        ld is N, in column-major layout K and M */
  SPMMBENCH_TUNES = 1 << 8           /* version 2. `bind` launches what it chooses from:
                                        spmmbench_shape gives it a B, a C and a stream */
};

/* A: compressed sparse rows. Columns ascend within a row without repetition; explicit zeros are
 * entries. libspmmbench.so also takes rows whose columns do not ascend. It copies A in prepare; an
 * A on a GPU, for a kernel that runs there, is copied within the memory of that GPU. */
typedef struct spmmbench_csr {
  size_t size;
  int64_t rows, cols, nnz;
  const void* row_ptr;  /* rows + 1 offsets, the first 0, the last nnz */
  const void* col_idx;  /* nnz columns, each in [0, cols) */
  const void* values;   /* nnz; NULL only for kernels with SPMMBENCH_BINARY_A */
  const void* row_ids;  /* NULL, or rows of int32: row i of A makes row row_ids[i] of C */
  int32_t memory;       /* SPMMBENCH_HOST or _CUDA, of all four arrays */
  int32_t row_ptr_type; /* SPMMBENCH_I32 or _I64 */
  int32_t col_idx_type; /* SPMMBENCH_I32 or _I64 */
  int32_t value_type; /* SPMMBENCH_F32, or the element type of the precision, which it always is at
                         SPMMBENCH_FP64_IN. libspmmbench.so takes any and rounds to the precision */
  /* Version 2. Where `memory` is SPMMBENCH_CUDA: the same A on the host, which lives as long as
   * that on the device. NULL where the caller has it in one place only; spmmbench has it in both.
   */
  const struct spmmbench_csr* on_host;
  /* Version 2, at SPMMBENCH_FP8_*_IN: an element is this times its value, whatever value_type is. 0
   * stands for 1. libspmmbench.so takes values of the precision's 8 bits as they are. It rounds
   * others with a scale of its own, by which the largest magnitude becomes the largest number (448
   * in E4M3, 57344 in E5M2). */
  float scale;
} spmmbench_csr;

/* B or C: lines * ld elements. Lines are rows in row-major layout, columns in column-major layout.
 *
 * Alignment: `data` is a multiple of the kernel's data_alignment, and ld * (bytes of an element) of
 * its pitch_alignment, even if there is one line. Only a single column in column-major layout may
 * have any ld. libspmmbench.so takes row-major lines on a GPU that are less than 4 GiB apart.
 *
 * Gaps: if ld exceeds the line, the gap behind every line, the last one included, may be read in B
 * and overwritten in C. The callee cannot see where memory ends, so the caller makes sure that the
 * gap behind the last line is memory of the array. libspmmbench.so reads lines of B in pieces of at
 * most 128 bytes, and nothing behind the piece in which a line ends. Behind a single column of B,
 * elements up to the next multiple of 16 bytes may be read. */
typedef struct spmmbench_dense {
  size_t size;
  void* data;         /* in the memory of the kernel's device; B is only read */
  int64_t rows, cols; /* B: K x N, C: M x N */
  int64_t ld;         /* elements from one line to the next */
  int32_t layout, type;
  float scale; /* version 2, of B at SPMMBENCH_FP8_*_IN: as in spmmbench_csr */
} spmmbench_dense;

/* What a plan is bound to. B's type follows from the precision: SPMMBENCH_F32, _F16, _BF16,
 * _F64, _E4M3 or _E5M2. */
typedef struct spmmbench_shape {
  size_t size;
  int64_t n;      /* columns of B and C, at least 1; in libspmmbench.so at most 2^40 */
  int32_t layout; /* of B and C */
  int32_t c_type; /* SPMMBENCH_F32, _F16 or _BF16; at SPMMBENCH_FP64_IN _F64 */
  /* Version 2: ld of B and C in every launch of the plan; 0 where the caller does not know it yet.
   * libspmmbench.so does not read them, nor what follows. */
  int64_t ld_b, ld_c;
  /* Version 2, in `bind` of kernels with SPMMBENCH_TUNES: a B with values of (-1, 1) and a C of
   * zeros, of this shape and with these ld, and the stream to launch on. They are freed when bind
   * returns. NULL elsewhere, and where there is no memory for them. */
  const spmmbench_dense *b, *c;
  void* stream;
} spmmbench_shape;

typedef struct spmmbench_problem {
  size_t size;
  const spmmbench_csr* a;
  const char* const* options; /* key, value, key, value, ..., NULL; NULL: none. spmmbench passes
                                 only keys that the kernel declares */
  int32_t precision;
  uint64_t flags; /* version 2: a sum of these, which libspmmbench.so reads. Plug-ins need not:
                     spmmbench gives 0 */
} spmmbench_problem;
/* Version 2. TRANSPOSED: the product is with A^T, which is made where A lies; M and K change
 * places. UNCHECKED: A in a GPU's memory is not checked. The caller knows that columns ascend in
 * each row; with any other matrix, kernels read and write out of bounds. A is read in the order of
 * the legacy default stream, perhaps after `prepare` and `bind` have returned. The first launch on
 * another stream waits for that, and must not be captured in a CUDA graph. CHECKED_LATE: A in a
 * GPU's memory is checked, but `prepare` and `bind` may return before that, as with UNCHECKED. A's
 * arrays must not change until the next call with the prepared object or one of its plans has
 * returned. That call waits for the check; a launch on the legacy default stream is enqueued first,
 * and waits then. If A is no valid matrix, that call and all later ones refuse it: C then holds
 * anything, and nothing outside of it was written. Kernels that build a form of A wait in `prepare`
 * all the same. */
enum { SPMMBENCH_TRANSPOSED = 1, SPMMBENCH_UNCHECKED = 2, SPMMBENCH_CHECKED_LATE = 4 };

/* Receives the times of preparation. May be NULL in every call. */
typedef struct spmmbench_stages {
  size_t size;
  void* context;
  /* Adds `milliseconds` to a stage: "reorder", "build", "upload", "tune", or a name of your own
   * (snake_case). The time of a call that it adds to no stage is counted as "build". Device work
   * counts in the stage that waits for it. Callers of libspmmbench.so may call it from here. */
  void (*add)(void* context, const char* stage, double milliseconds);
} spmmbench_stages;

/* What a plan reports. The caller sets `size` and zeroes all other members; the kernel fills those
 * that it knows. Strings and arrays live as long as the plan. */
typedef struct spmmbench_report {
  size_t size;
  uint64_t device_bytes;     /* memory of the kernel's device that the library has allocated for the
                                plan and its prepared A and still holds: not B, C and arrays of A,
                                which the caller owns. 0: unknown. check-plugin compares it with
                                what is held; in a row, spmmbench adds the arrays of A that it holds
                                on the device for SPMMBENCH_KEEPS_A */
  double issued_flops;       /* per launch, with padding; 0: 2 * nnz * N */
  const char* const* params; /* values in force: key, value, ..., NULL; NULL: none */
  const char* format;   /* name of the format of A; NULL: this and all members below are unknown */
  int64_t format_bytes; /* all that the kernel reads of A, indices and values */
  int64_t format_index_bytes; /* of which indices */
  int64_t stored;             /* stored entries, padding included */
  int64_t tiles, windows;     /* 0 where the form has none */
  double fill;                /* nnz over the entries that the tiles have room for; 1: no padding */
  uint64_t bytes_to_host; /* version 2: what prepare and bind copied from the kernel's GPU to the
                             host; 0 in libraries that do not count */
} spmmbench_report;

/* The type of an option. */
enum {
  SPMMBENCH_TEXT = 0,    /* any: the kernel checks it */
  SPMMBENCH_INTEGER = 1, /* of [minimum, maximum] */
  SPMMBENCH_REAL = 2,    /* likewise */
  SPMMBENCH_CHOICE = 3   /* one of choices */
};

/* An option of a kernel, given as NAME?key=value&key=value on the command line. The caller checks
 * values before the kernel sees them, except those of type text. */
typedef struct spmmbench_option {
  size_t size;
  const char* name;
  const char* default_value; /* as a user would type it; "auto" when chosen from the matrix */
  const char* help;          /* one line: meaning and unit */
  int32_t type;
  double minimum, maximum;    /* both 0: any number */
  const char* const* choices; /* ended by NULL; NULL: none */
} spmmbench_option;

/* Version 2. What a kernel takes, and how it sums, where one of its options has one value. 0 and
 * NULL stand for what the kernel says. Of several that apply, the later one decides. */
typedef struct spmmbench_variant {
  size_t size;
  const char* option;    /* of type SPMMBENCH_CHOICE */
  const char* value;     /* one of its choices. The default counts where the option is not given */
  uint32_t accumulation; /* SPMMBENCH_SET of one of SPMMBENCH_SUMS_* */
  uint32_t c_types, layouts;
  const int64_t* allowed_n; /* this or n_multiple replaces both of the kernel's */
  size_t allowed_n_count;
  int64_t n_multiple, max_n;
} spmmbench_variant;

/* A in a kernel's own form, and a kernel bound to a shape: each library defines its own. */
typedef struct spmmbench_prepared spmmbench_prepared;
typedef struct spmmbench_plan spmmbench_plan;

typedef struct spmmbench_kernel spmmbench_kernel;
struct spmmbench_kernel {
  size_t size;
  const char* name;               /* snake_case, unique in its library */
  const char* summary;            /* one line */
  const char* source;             /* paper, library or author */
  int32_t device;                 /* SPMMBENCH_HOST or _CUDA */
  int32_t min_compute_capability; /* 90 for 9.0; 0: any */
  int32_t exact_architecture;     /* not 0: runs only on min_compute_capability (sm_90a code) */
  int32_t accumulation;           /* SPMMBENCH_SUMS_* */
  uint32_t flags;
  /* Sets of the values that the kernel takes. */
  uint32_t precisions;    /* of SPMMBENCH_*_IN */
  uint32_t c_types;       /* of element types */
  uint32_t layouts;       /* of B and C, which have the same */
  uint32_t a_memory;      /* where A may lie; spmmbench gives CUDA memory if both are in the set */
  uint32_t row_ptr_types; /* I32, I64; spmmbench gives I32 where it is in the set and nnz < 2^31 */
  uint32_t col_idx_types; /* I32, I64; spmmbench gives I32 where it is in the set */
  uint32_t a_value_types; /* spmmbench gives the precision's element type where it is in the set,
                             else F32, which holds the rounded values too, but those of fp64 */
  /* Alignment of B and C in bytes; 0 or 1: that of an element. spmmbench gives 256 and 16, at N = 1
   * in column-major layout 256 and one element. libspmmbench.so asks for 16 and 16 on a GPU: vector
   * loads, bulk copies and tensor maps need no more. */
  uint32_t data_alignment, pitch_alignment;
  /* The N that the kernel takes: those of this array, or where it is empty the multiples of
   * n_multiple. */
  const int64_t* allowed_n;
  size_t allowed_n_count;
  int64_t n_multiple; /* 0 or 1: every N */
  const spmmbench_option* const* options;
  size_t option_count;
  void* user; /* the library's own */

  /* SPMMBENCH_OK where the kernel can do this, else SPMMBENCH_UNSUPPORTED. May be NULL: then all
   * that the fields allow is supported. *device_bytes: an estimate of what the report will say, 0
   * where unknown. libspmmbench.so takes NULL for device_bytes; spmmbench never passes it. A is on
   * the host here, whatever a_memory says. A caller may leave this call out: prepare and bind
   * refuse the same problems. */
  spmmbench_status (*supports)(const spmmbench_kernel* kernel, const spmmbench_problem* problem,
                               const spmmbench_shape* shape, uint64_t* device_bytes);
  /* Builds, uploads and tunes what does not depend on the shape. Returns when A may be reused. */
  spmmbench_status (*prepare)(const spmmbench_kernel* kernel, const spmmbench_problem* problem,
                              const spmmbench_stages* stages, spmmbench_prepared** prepared);
  spmmbench_status (*bind)(spmmbench_prepared* prepared, const spmmbench_shape* shape,
                           const spmmbench_stages* stages, spmmbench_plan** plan);
  /* May be NULL. For kernels that look at what B holds: called once before the first launch; every
   * later launch gets the same values of B. */
  spmmbench_status (*inspect_b)(spmmbench_plan* plan, const spmmbench_dense* b,
                                const spmmbench_stages* stages);
  /* C = A * B, enqueued on the cudaStream_t `stream` (NULL: the legacy default stream). A kernel on
   * the host ignores the stream and is done on return. Allocates nothing and does not synchronise,
   * so that it can be captured into a CUDA graph. Writes every element of C and reads none; with
   * SPMMBENCH_ADDS_TO_C it finds zeros there and may leave them. */
  spmmbench_status (*launch)(spmmbench_plan* plan, const spmmbench_dense* b,
                             const spmmbench_dense* c, void* stream);
  /* May be NULL: nothing to tell. */
  spmmbench_status (*report)(spmmbench_plan* plan, spmmbench_report* report);
  /* NULL is allowed as the argument. The caller has waited for the plan's launches. */
  void (*destroy_plan)(spmmbench_plan* plan);
  void (*destroy_prepared)(spmmbench_prepared* prepared);

  /* Version 2; 0 is no limit. Other sizes are refused before `supports` is asked. */
  int64_t max_n;                  /* the largest N */
  int64_t m_multiple, k_multiple; /* of which M and K must be multiples */
  int64_t max_mk, max_kn;         /* the largest M * K and K * N */
  /* Version 2. Rows of C that a launch may overwrite behind the last: those up to the next multiple
   * of this number, whose memory spmmbench provides. Above 1 only where SPMMBENCH_ROW_MAJOR is the
   * only layout. */
  int64_t c_row_multiple;
  const spmmbench_variant* const* variants; /* version 2 */
  size_t variant_count;
  /* Version 2. NULL: launches prepare nothing. Else prepares at once all that later launches of the
   * plan would have prepared. Called before a CUDA graph is captured, and before spmmbench times
   * launches. */
  spmmbench_status (*settle)(spmmbench_plan* plan, const spmmbench_stages* stages);
  /* Version 2. NULL: A keeps its values. Else replaces them and keeps the pattern and the scale of
   * A. `values` has nnz elements of type `value_type` in `memory`, in the order of the arrays that
   * A was prepared from. Types and memory are those that `prepare` may be given; at
   * SPMMBENCH_FP8_*_IN libspmmbench.so takes their 8 bits alone. Values on the device are read
   * in the order of `stream`, others before the function returns. All plans of `prepared` multiply
   * by the new values in launches that follow on `stream`, captured ones included. A call takes at
   * most about as long as a launch; the first one may also make what it needs, and wait. */
  spmmbench_status (*replace_values)(spmmbench_prepared* prepared, const void* values,
                                     int32_t value_type, int32_t memory, void* stream);
  /* Version 2; a library of version 2 may end its struct before this member. As `launch`, for
   * C = alpha * A * B + beta * C. C is not read if beta is 0. Both scalars are finite; except at
   * SPMMBENCH_FP64_IN they are rounded to fp32. NULL in a plug-in: spmmbench then multiplies into
   * memory of its own and adds in a launch of its own. libspmmbench.so does the same for kernels
   * that take no scalars, and rounds the product to C's type in between. The first such call of a
   * plan (any but alpha = 1, beta = 0) then allocates and waits, so make it before the capture of a
   * CUDA graph. */
  spmmbench_status (*launch_scaled)(spmmbench_plan* plan, const spmmbench_dense* b,
                                    const spmmbench_dense* c, double alpha, double beta,
                                    void* stream);
  /* Version 2; a library of version 2 may end its struct before this member. *symmetric: 1 where A,
   * as it was rounded, equals its transpose to the bit of each value, else 0. It is looked at where
   * it lies for the kernel: on a GPU a few bytes come to the host. NULL in a plug-in. */
  spmmbench_status (*is_symmetric)(spmmbench_prepared* prepared, int32_t* symmetric);
  /* Version 2; a library of version 2 may end its struct before this member. Prepares the transpose
   * of A as `prepared` has it, in the same way: the arrays of A are not read again. Neither of the
   * two needs the other afterwards. With CHECKED_LATE it waits for the check of A, and refuses an A
   * that is no valid matrix. NULL in a plug-in: give `prepare` A^T. */
  spmmbench_status (*transpose)(spmmbench_prepared* prepared, const spmmbench_stages* stages,
                                spmmbench_prepared** transposed);
};

/* The sizes of version 1. */
#define SPMMBENCH_KERNEL_SIZE_1 offsetof(spmmbench_kernel, max_n)
#define SPMMBENCH_KERNEL_SIZE_2 \
  offsetof(spmmbench_kernel, launch_scaled) /* the least of version 2 */
#define SPMMBENCH_SHAPE_SIZE_1 offsetof(spmmbench_shape, ld_b)
#define SPMMBENCH_DENSE_SIZE_1 offsetof(spmmbench_dense, scale)
#define SPMMBENCH_CSR_SIZE_1 offsetof(spmmbench_csr, on_host)
#define SPMMBENCH_PROBLEM_SIZE_1 offsetof(spmmbench_problem, flags)
#define SPMMBENCH_REPORT_SIZE_1 offsetof(spmmbench_report, bytes_to_host)

typedef struct spmmbench_library {
  size_t size;
  uint32_t abi_version; /* the version that was asked for */
  const char* name;
  const char* version;
  const spmmbench_kernel* const* kernels;
  size_t kernel_count;
  const char* (*last_error)(void); /* of the calling thread; never NULL; until its next call */
} spmmbench_library;

/* The one symbol of a library. NULL when it does not speak `abi_version`.
 *
 * In libspmmbench.so the kernel called "auto" starts with a product that needs no preparation.
 * Some of its launches, after 1, 2, 4, 8, ... others, prepare and measure faster kernels, in
 * proportion to the time that products have taken. Such a launch allocates, launches on a stream of
 * the library with a B and a C of the library, and waits for the device. Results stay within the
 * error bound, but their bits may change, and two plans may arrive at different kernels. In a
 * stream capture nothing is prepared, and what was captured lives as long as the plan. `settle`, or
 * `bind` with the option tune=8, does all this at once; it takes up to about `budget_ms` (an
 * option, 1000 by default). With tune=1 nothing is measured. */
SPMMBENCH_EXPORT const spmmbench_library* spmmbench_kernels(uint32_t abi_version);

#ifdef __cplusplus
}
#endif

#endif
