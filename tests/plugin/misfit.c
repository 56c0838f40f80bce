/* Libraries that cannot be loaded as plug-ins: which fault one has is MISFIT. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "spmmbench/plugin.h"

enum {
  CRASHES = 1,
  HANGS,
  EXITS,
  OTHER_VERSION,
  NEWER_TABLE,
  SMALL_TABLE,
  SMALL_KERNEL,
  BAD_NAME,
  NO_LAUNCH,
  LARGE_KERNEL, /* none: of a later header of the same version, which has more fields */
  NO_NAME,
  NO_KERNEL,
  TWO_KERNELS, /* of one name */
  NO_OPTION,
  NO_HELP,
  UNKNOWN_TYPE,
  FALLING_RANGE,
  INFINITE_RANGE,
  NO_CHOICES,
  OPTION_OF_WORDS,
  TWO_OPTIONS, /* of one name */
  BAD_DEFAULT,
  LINES_OF_HELP,
  LINES_OF_SUMMARY,
  PRINTS, /* none */
  VARIANT_OF_A_NUMBER,
  SCALES_OF_BLOCKS, /* which the structs do not have */
  NO_TABLE,         /* of no size */
  NEGATIVE_N
};

static const char* last_error(void) { return ""; }
static spmmbench_status prepare(const spmmbench_kernel* kernel, const spmmbench_problem* problem,
                                const spmmbench_stages* stages, spmmbench_prepared** prepared) {
  (void)kernel, (void)problem, (void)stages, (void)prepared;
  return SPMMBENCH_FAILED;
}
static spmmbench_status bind(spmmbench_prepared* prepared, const spmmbench_shape* shape,
                             const spmmbench_stages* stages, spmmbench_plan** plan) {
  (void)prepared, (void)shape, (void)stages, (void)plan;
  return SPMMBENCH_FAILED;
}
static spmmbench_status launch(spmmbench_plan* plan, const spmmbench_dense* b,
                               const spmmbench_dense* c, void* stream) {
  (void)plan, (void)b, (void)c, (void)stream;
  return SPMMBENCH_FAILED;
}
static void destroy_plan(spmmbench_plan* plan) { (void)plan; }
static void destroy_prepared(spmmbench_prepared* prepared) { (void)prepared; }

static const char* const no_choices[] = {NULL};
static const spmmbench_option option = {.size = sizeof option,
                                        .name = MISFIT == OPTION_OF_WORDS ? "a width" : "width",
                                        .default_value = MISFIT == BAD_DEFAULT ? "0" : "8",
                                        .help = MISFIT == NO_HELP         ? NULL
                                                : MISFIT == LINES_OF_HELP ? "columns\nof C"
                                                                          : "columns of C",
                                        .type = MISFIT == UNKNOWN_TYPE ? 9
                                                : MISFIT == NO_CHOICES ? SPMMBENCH_CHOICE
                                                                       : SPMMBENCH_INTEGER,
                                        .minimum = MISFIT == NO_CHOICES ? 0 : 1,
                                        .maximum = MISFIT == INFINITE_RANGE  ? HUGE_VAL
                                                   : MISFIT == FALLING_RANGE ? -1
                                                   : MISFIT == NO_CHOICES    ? 0
                                                                             : 64,
                                        .choices = no_choices};
static const spmmbench_variant variant = {.size = sizeof variant, .option = "width", .value = "8"};
static const spmmbench_variant* const variants[] = {&variant};
static const spmmbench_option* const options[] = {MISFIT == NO_OPTION ? NULL : &option, &option};

static const int64_t negative[] = {-8};

static const spmmbench_kernel kernel = {
    .size = MISFIT == SMALL_KERNEL   ? 40
            : MISFIT == LARGE_KERNEL ? sizeof kernel + 64
                                     : sizeof kernel,
    .name = MISFIT == BAD_NAME  ? "a name"
            : MISFIT == NO_NAME ? NULL
                                : "misfit",
    .summary = MISFIT == LINES_OF_SUMMARY ? "two\nlines" : "",
    .device = SPMMBENCH_HOST,
    .precisions = MISFIT == SCALES_OF_BLOCKS ? SPMMBENCH_SET(SPMMBENCH_FP8_E4M3_BLOCK_IN) : 1,
    .c_types = 1,
    .layouts = 1,
    .a_memory = 1,
    .row_ptr_types = SPMMBENCH_SET(SPMMBENCH_I32),
    .col_idx_types = SPMMBENCH_SET(SPMMBENCH_I32),
    .a_value_types = 1,
    .allowed_n = negative,
    .allowed_n_count = MISFIT == NEGATIVE_N,
    .n_multiple = 1,
    .options = options,
    .option_count = MISFIT == TWO_OPTIONS ? 2 : 1,
    .prepare = prepare,
    .bind = bind,
    .launch = MISFIT == NO_LAUNCH ? NULL : launch,
    .destroy_plan = destroy_plan,
    .destroy_prepared = destroy_prepared,
    .variants = variants,
    .variant_count = MISFIT == VARIANT_OF_A_NUMBER};
static const spmmbench_kernel* const kernels[] = {MISFIT == NO_KERNEL ? NULL : &kernel, &kernel};
static const spmmbench_library library = {
    MISFIT == SMALL_TABLE ? 24
    : MISFIT == NO_TABLE  ? 0
                          : sizeof library,
    MISFIT == NEWER_TABLE ? SPMMBENCH_ABI_VERSION + 1 : SPMMBENCH_ABI_VERSION,
    "misfit",
    "1",
    kernels,
    MISFIT == TWO_KERNELS ? 2 : 1,
    last_error};

const spmmbench_library* spmmbench_kernels(uint32_t abi_version) {
  (void)abi_version;
  if (MISFIT == CRASHES) abort();
  if (MISFIT == HANGS) sleep(1000);
  if (MISFIT == EXITS) exit(0);
  if (MISFIT == PRINTS) puts("the entry was called");
  return MISFIT == OTHER_VERSION ? NULL : &library;
}
