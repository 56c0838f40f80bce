/* One half of a plug-in of two files: the kernel, or with -DENTRY the entry. What the kernel has to
 * say of an error must reach last_error() in the other file. */

#include "spmmbench/plugin_helpers.h"

#ifdef ENTRY
extern const spmmbench_kernel kernel;
SPMMBENCH_PLUGIN("two_files", "1", &kernel)
#else
static spmmbench_status prepare(const spmmbench_kernel* self, const spmmbench_problem* problem,
                                const spmmbench_stages* stages, spmmbench_prepared** prepared) {
  char text[64];
  (void)self, (void)stages, (void)prepared;
  snprintf(text, sizeof text, "cut is %s, depth %s", spmmbench_option_value(problem, "cut", "1"),
           spmmbench_option_value(problem, "depth", "2"));
  return spmmbench_fail(SPMMBENCH_UNSUPPORTED, text);
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

static const spmmbench_option cut = {sizeof cut,        "cut", "1", "a number",
                                     SPMMBENCH_INTEGER, 1,     9,   NULL};
static const spmmbench_option depth = {sizeof depth,      "depth", "2", "a number",
                                       SPMMBENCH_INTEGER, 1,       9,   NULL};
static const spmmbench_option* const options[] = {&cut, &depth};

extern const spmmbench_kernel kernel;
const spmmbench_kernel kernel = {.size = sizeof kernel,
                                 .name = "refuses",
                                 .precisions = SPMMBENCH_SET(SPMMBENCH_FP32_IN),
                                 .c_types = SPMMBENCH_SET(SPMMBENCH_F32),
                                 .layouts = SPMMBENCH_SET(SPMMBENCH_ROW_MAJOR),
                                 .a_memory = SPMMBENCH_SET(SPMMBENCH_HOST),
                                 .row_ptr_types = SPMMBENCH_SET(SPMMBENCH_I64),
                                 .col_idx_types = SPMMBENCH_SET(SPMMBENCH_I32),
                                 .a_value_types = SPMMBENCH_SET(SPMMBENCH_F32),
                                 .options = options,
                                 .option_count = 2,
                                 .prepare = prepare,
                                 .bind = bind,
                                 .launch = launch,
                                 .destroy_plan = destroy_plan,
                                 .destroy_prepared = destroy_prepared};
#endif
