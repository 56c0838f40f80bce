// A plug-in for the tests, on the CPU: kernels that need what flags promise them, and kernels with
// one fault each. All are the same product, done in fp32 by rows.

#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "spmmbench/plugin.h"

struct spmmbench_prepared {
  const spmmbench_kernel* kernel;
  spmmbench_csr a;
  std::string value_type, first_value;         // as numbers
  std::vector<char> row_ptr, col_idx, values;  // copies, where A's arrays are not kept
  char split;                                  // the value of that option, a digit
};
struct spmmbench_plan {
  const spmmbench_prepared* prepared;
  spmmbench_shape shape;
  bool launched;
  double tuned_with;  // the sum over the B of bind
};

namespace {

#ifdef LOADS_FOR_MS
__attribute__((constructor)) void load_slowly() { usleep(LOADS_FOR_MS * 1000); }
#endif

constexpr std::int64_t kRowsOfATile = 16;

thread_local const char* message = "";

spmmbench_status refuse(spmmbench_status status, const char* what) {
  message = what;
  return status;
}

float rounded_to_11_bits(float value) {
  constexpr std::uint32_t kDropped = 1U << 13;  // the bits that fp16 has not
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  bits = (bits + kDropped / 2) & ~(kDropped - 1);
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}

// Of the bits of a number in fp8_e4m3: 4 of exponent, 3 of fraction.
float of_8_bits(std::uint8_t bits) {
  const int exponent = bits >> 3 & 15, fraction = bits & 7;
  const int shift = (exponent == 0 ? 1 : exponent) - 10;
  const float magnitude = std::ldexp(static_cast<float>(fraction + (exponent == 0 ? 0 : 8)), shift);
  return bits < 128 ? magnitude : -magnitude;
}

void crash() { *static_cast<volatile int*>(nullptr) = 1; }

bool is(const spmmbench_kernel* kernel, const char* name) {
  return std::strcmp(kernel->name, name) == 0;
}

spmmbench_status prepare(const spmmbench_kernel* kernel, const spmmbench_problem* problem,
                         const spmmbench_stages* stages, spmmbench_prepared** out) {
  if (is(kernel, "crash_in_prepare")) crash();
  if (is(kernel, "throws")) throw std::runtime_error("thrown on purpose");
  if (is(kernel, "throws_an_int")) throw 7;
  if (is(kernel, "no_memory")) return refuse(SPMMBENCH_OUT_OF_MEMORY, "all is gone");
  if (is(kernel, "gives_nothing")) return SPMMBENCH_OK;
  if (is(kernel, "strange_status")) return 99;
  if (is(kernel, "is_silent")) return refuse(SPMMBENCH_UNSUPPORTED, "");
  if (stages != nullptr) {
    const auto add = [&](const char* stage, double ms) { stages->add(stages->context, stage, ms); };
    add("sort", 12.5);
    if (is(kernel, "load_stage")) add("load", 700);
    for (int i = 0; is(kernel, "many_stages") && i < 100; ++i)
      add(("stage" + std::to_string(i)).c_str(), 1);
    if (is(kernel, "nan_stage")) add("sort", NAN);
    if (is(kernel, "negative_stage")) add("sort", -1);
    if (is(kernel, "unnamed_stage")) add(nullptr, 1);
  }
  const spmmbench_csr& a = *problem->a;
  if (a.memory != SPMMBENCH_HOST) return refuse(SPMMBENCH_FAILED, "A is not on the host");
  unsigned first = 0;
  if (a.nnz > 0) std::memcpy(&first, a.values, a.value_type == SPMMBENCH_F32 ? 4 : 2);
  auto* made = new spmmbench_prepared{
      kernel, a, std::to_string(a.value_type), std::to_string(first), {}, {}, {}, '1'};
  for (const char* const* at = problem->options; at != nullptr && *at != nullptr; at += 2)
    if (std::strcmp(at[0], "split") == 0) made->split = *at[1];
  if ((kernel->flags & SPMMBENCH_KEEPS_A) == 0) {
    const auto copy = [](std::vector<char>& to, const void*& array, std::int64_t bytes) {
      const auto* from = static_cast<const char*>(array);
      to.assign(from, from + bytes);
      array = to.data();
    };
    copy(made->row_ptr, made->a.row_ptr, (a.rows + 1) * 4);
    copy(made->col_idx, made->a.col_idx, a.nnz * 8);
    copy(made->values, made->a.values, a.nnz * 4);
  }
  *out = made;
  return SPMMBENCH_OK;
}

spmmbench_status launch(spmmbench_plan* plan, const spmmbench_dense* b, const spmmbench_dense* c,
                        void* stream);

spmmbench_status bind(spmmbench_prepared* prepared, const spmmbench_shape* shape,
                      const spmmbench_stages*, spmmbench_plan** out) {
  if (is(prepared->kernel, "picky") && shape->n == 8)
    return refuse(SPMMBENCH_UNSUPPORTED, "does not like 8 columns");
  if (is(prepared->kernel, "gives_no_plan")) return SPMMBENCH_OK;
  if (is(prepared->kernel, "leaks")) static_cast<char*>(std::malloc(1000))[0] = 1;
  // So much that the allocator takes pages for it alone.
  if (is(prepared->kernel, "leaks_pages")) static_cast<char*>(std::malloc(1 << 20))[0] = 1;
  double tuned_with = 0;
  if (is(prepared->kernel, "tunes")) {
    if (shape->b == nullptr || shape->b->cols != shape->n || shape->c->ld != shape->ld_c)
      return refuse(SPMMBENCH_FAILED, "got nothing to tune with");
    spmmbench_plan trial{prepared, *shape, false, 0};
    for (int i = 0; i < 3; ++i)
      if (launch(&trial, shape->b, shape->c, shape->stream) != SPMMBENCH_OK)
        return SPMMBENCH_FAILED;
    for (std::int64_t j = 0; j < shape->n; ++j)
      tuned_with += std::abs(static_cast<const float*>(shape->b->data)[j]);
    if (tuned_with == 0) return refuse(SPMMBENCH_FAILED, "tunes with a B of zeros");
  } else if (shape->b != nullptr) {
    return refuse(SPMMBENCH_FAILED, "got a B that it did not ask for");
  }
  *out = new spmmbench_plan{prepared, *shape, false, tuned_with};
  return SPMMBENCH_OK;
}

spmmbench_status launch(spmmbench_plan* plan, const spmmbench_dense* b, const spmmbench_dense* c,
                        void*) {
  const spmmbench_csr& a = plan->prepared->a;
  const spmmbench_kernel* kernel = plan->prepared->kernel;
  if (is(kernel, "crash_in_launch")) crash();
  if (is(kernel, "hang")) sleep(1000);
  if (is(kernel, "exits")) std::exit(0);
  if (is(kernel, "throws_in_launch")) throw std::runtime_error("thrown on purpose");
  if (is(kernel, "prepares_late") && !std::exchange(plan->launched, true)) usleep(200'000);
  if (is(kernel, "ends_otherwise")) std::atexit([] { _exit(9); });
  if (is(kernel, "prints")) std::puts("{\"launched\": true");
  if (is(kernel, "prints_no_line")) std::fputs("launching ... ", stdout);
  if (is(kernel, "no_launch")) return SPMMBENCH_OK;
  if (is(kernel, "packed") && (b->ld != b->cols || c->ld != c->cols))
    return refuse(SPMMBENCH_FAILED, "rows have a gap");
  if (is(kernel, "wants_packed") && b->ld != b->cols)
    return refuse(SPMMBENCH_UNSUPPORTED, "needs packed rows");
  if (is(kernel, "knows_ld") && (plan->shape.ld_b != b->ld || plan->shape.ld_c != c->ld))
    return refuse(SPMMBENCH_FAILED, "another ld than that of bind");
  const auto* first = static_cast<const float*>(a.values);
  const bool exact = a.nnz > 0 && *first * 8192 == std::round(*first * 8192);
  if (exact && is(kernel, "refuses_exact")) return refuse(SPMMBENCH_FAILED, "workspace too small");
  if (exact && is(kernel, "no_memory_for_exact"))
    return refuse(SPMMBENCH_OUT_OF_MEMORY, "no second workspace");
  if (is(kernel, "stale") && std::exchange(plan->launched, true)) {
    std::memset(c->data, 0, static_cast<std::size_t>(c->rows * c->ld) * sizeof(float));
    return SPMMBENCH_OK;
  }
  if (is(kernel, "half_zeros")) {
    std::memset(c->data, 0, static_cast<std::size_t>(c->rows * c->ld) * sizeof(float));
    return SPMMBENCH_OK;
  }
  if (is(kernel, "fails")) return refuse(SPMMBENCH_FAILED, "failed on purpose");
  if (is(kernel, "paints")) return refuse(SPMMBENCH_FAILED, "\x1b[31mred\nand more");
  const auto* row_ptr = static_cast<const std::int32_t*>(a.row_ptr);
  const auto* col_idx = static_cast<const std::int64_t*>(a.col_idx);
  const auto* values = static_cast<const float*>(a.values);
  auto* out = static_cast<float*>(c->data);
  const bool adds = is(kernel, "adds") || is(kernel, "adds_unasked");
  const bool binary = is(kernel, "binary");
  const bool rounds = plan->prepared->split == '2';
  const bool eight_bits = b->type == SPMMBENCH_E4M3;
  const float scale = eight_bits && !is(kernel, "no_scale") ? a.scale * b->scale : 1;
  const auto b_at = [&](std::int64_t at) {
    if (eight_bits) return of_8_bits(static_cast<const std::uint8_t*>(b->data)[at]);
    return static_cast<const float*>(b->data)[at];
  };
  if (c->type != SPMMBENCH_F32) return refuse(SPMMBENCH_UNSUPPORTED, "writes fp32");
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < c->cols; ++j) {
      float sum = adds ? out[i * c->ld + j] : 0;
      for (auto e = row_ptr[i]; e < row_ptr[i + 1]; ++e)
        sum += (binary ? 1 : values[e]) * b_at(col_idx[e] * b->ld + j);
      sum *= scale;
      out[i * c->ld + j] = rounds ? rounded_to_11_bits(sum) : sum;
    }
  if (is(kernel, "pads"))
    for (std::int64_t i = a.rows; i % kRowsOfATile != 0; ++i)
      for (std::int64_t j = 0; j < c->ld; ++j) out[i * c->ld + j] = 1;
  if (is(kernel, "beyond")) out[c->rows * c->ld] = 1;
  if (is(kernel, "before")) out[-2] = 1;
  return SPMMBENCH_OK;
}

// In fp32.
spmmbench_status launch_scaled(spmmbench_plan* plan, const spmmbench_dense* b,
                               const spmmbench_dense* c, double alpha, double beta, void* stream) {
  auto* const out = static_cast<float*>(c->data);
  const std::vector<float> before(out, out + c->rows * c->ld);
  const spmmbench_status status = launch(plan, b, c, stream);
  if (is(plan->prepared->kernel, "scales_alone")) beta = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    out[i] *= static_cast<float>(alpha);
    if (beta != 0) out[i] += static_cast<float>(beta) * before[i];
  }
  return status;
}

spmmbench_status replace_values(spmmbench_prepared* prepared, const void* values,
                                std::int32_t value_type, std::int32_t memory, void*) {
  if (value_type != SPMMBENCH_F32 || memory != SPMMBENCH_HOST)
    return refuse(SPMMBENCH_FAILED, "new values are not in fp32 on the host");
  if (is(prepared->kernel, "keeps_its_values")) return SPMMBENCH_OK;
  std::memcpy(prepared->values.data(), values, prepared->values.size());
  return SPMMBENCH_OK;
}

spmmbench_status inspect_b(spmmbench_plan*, const spmmbench_dense* b,
                           const spmmbench_stages* stages) {
  if (stages != nullptr) stages->add(stages->context, "count", static_cast<double>(b->rows));
  return SPMMBENCH_OK;
}

spmmbench_status report(spmmbench_plan* plan, spmmbench_report* out) {
  static const char* const params[] = {"order", "natural", nullptr};
  static const char* told[] = {"value_type", nullptr, "first_value", nullptr, nullptr};
  told[1] = plan->prepared->value_type.c_str();
  told[3] = plan->prepared->first_value.c_str();
  const bool tells = std::strncmp(plan->prepared->kernel->name, "tells", 5) == 0;
  out->device_bytes = 1000;
  if (is(plan->prepared->kernel, "copies") || plan->prepared->kernel->replace_values != nullptr)
    out->device_bytes = plan->prepared->row_ptr.size() + plan->prepared->col_idx.size() +
                        plan->prepared->values.size();
  if (is(plan->prepared->kernel, "claims_much")) out->device_bytes = 100'000'000;
  out->params = tells ? told : params;
  out->format = "csr";
  out->format_bytes = 8 * plan->prepared->a.nnz;
  out->stored = is(plan->prepared->kernel, "negative_size") ? -1 : plan->prepared->a.nnz;
  const auto is_of = [&](const char* name) { return is(plan->prepared->kernel, name); };
  out->fill = is_of("nan_fill") ? NAN : 1;
  if (is_of("infinite_flops")) out->issued_flops = HUGE_VAL;
  if (is_of("huge_bytes")) out->device_bytes = UINT64_MAX;
  static const char* const lone[] = {"order", nullptr, nullptr};
  if (is_of("lone_param")) out->params = lone;
  return SPMMBENCH_OK;
}

void destroy_plan(spmmbench_plan* plan) {
  if (is(plan->prepared->kernel, "crash_in_destroy")) crash();
  if (is(plan->prepared->kernel, "throws_in_destroy")) throw std::runtime_error("too late");
  delete plan;
}
void destroy_prepared(spmmbench_prepared* prepared) { delete prepared; }

const char* const kOrders[] = {"natural", "by length", nullptr};
const spmmbench_option kOptions[] = {
    {sizeof(spmmbench_option), "width", "8", "columns", SPMMBENCH_INTEGER, 1, 64, nullptr},
    {sizeof(spmmbench_option), "depth", "auto", "levels", SPMMBENCH_INTEGER, 0, 0, nullptr},
    {sizeof(spmmbench_option), "share", "0.5", "of rows", SPMMBENCH_REAL, 0, 1, nullptr},
    {sizeof(spmmbench_option), "order", "natural", "of rows", SPMMBENCH_CHOICE, 0, 0, kOrders},
    {sizeof(spmmbench_option), "note", "", "anything", SPMMBENCH_TEXT, 0, 0, nullptr}};
const spmmbench_option* const kOptionPointers[] = {&kOptions[0], &kOptions[1], &kOptions[2],
                                                   &kOptions[3], &kOptions[4]};
constexpr std::int64_t kAllowed[] = {8, 16};
const char* const kSplits[] = {"1", "2", "4", nullptr};
const spmmbench_option kSplit = {sizeof kSplit,    "split", "1", "parts of a sum",
                                 SPMMBENCH_CHOICE, 0,       0,   kSplits};
const spmmbench_option* const kSplitPointers[] = {&kSplit};
const spmmbench_variant kRounds = {
    sizeof kRounds, "split", "2", SPMMBENCH_SET(SPMMBENCH_SUMS_FP16), 0, 0, kAllowed, 2, 0, 0};
const spmmbench_variant kWritesHalf = {
    sizeof kWritesHalf, "split", "4", 0, SPMMBENCH_SET(SPMMBENCH_F16), 0, nullptr, 0, 0, 0};
const spmmbench_variant* const kVariants[] = {&kRounds, &kWritesHalf};

std::vector<spmmbench_kernel> describe() {
  spmmbench_kernel model = {};
  model.size = sizeof model;
  model.summary = "for tests";
  model.source = "tests";
  model.device = SPMMBENCH_HOST;
  model.flags = SPMMBENCH_KEEPS_A;
  model.precisions = SPMMBENCH_SET(SPMMBENCH_FP32_IN);
  model.c_types = SPMMBENCH_SET(SPMMBENCH_F32);
  model.layouts = SPMMBENCH_SET(SPMMBENCH_ROW_MAJOR);
  model.a_memory = SPMMBENCH_SET(SPMMBENCH_HOST);
  model.row_ptr_types = SPMMBENCH_SET(SPMMBENCH_I32);
  model.col_idx_types = SPMMBENCH_SET(SPMMBENCH_I64);
  model.a_value_types = SPMMBENCH_SET(SPMMBENCH_F32);
  model.n_multiple = 1;
  model.prepare = prepare;
  model.bind = bind;
  model.launch = launch;
  model.report = report;
  model.destroy_plan = destroy_plan;
  model.destroy_prepared = destroy_prepared;
#if defined(VERSION) && VERSION == 1
  model.size = SPMMBENCH_KERNEL_SIZE_1;
#endif
  std::vector<spmmbench_kernel> kernels;
  const auto add = [&](const char* name, unsigned flags = 0) -> spmmbench_kernel& {
    kernels.push_back(model);
    kernels.back().name = name;
    kernels.back().flags |= flags;
    return kernels.back();
  };
  add("good", SPMMBENCH_IGNORES_STREAM);
  add("adds", SPMMBENCH_ADDS_TO_C);
  add("binary", SPMMBENCH_BINARY_A);
  add("square", SPMMBENCH_SQUARE_ONLY);
  add("either_memory").a_memory |= SPMMBENCH_SET(SPMMBENCH_CUDA);
  spmmbench_kernel& few = add("few_n");
  few.allowed_n = kAllowed;
  few.allowed_n_count = 2;
  add("multiples").n_multiple = 16;
  add("packed", SPMMBENCH_PACKED_ROWS);
  add("wants_packed");
  add("knows_ld");
  add("pads").c_row_multiple = kRowsOfATile;
  spmmbench_kernel& limited = add("limited");
  limited.max_n = 8;
  limited.m_multiple = 25;
  limited.max_kn = 400;
  add("inspects").inspect_b = inspect_b;
  spmmbench_kernel& optional = add("optional");
  optional.options = kOptionPointers;
  optional.option_count = 5;
  add("tunes", SPMMBENCH_TUNES);
  spmmbench_kernel& varied = add("varied");
  varied.precisions = SPMMBENCH_SET(SPMMBENCH_TF32_IN);
  varied.options = kSplitPointers;
  varied.option_count = 1;
  varied.variants = kVariants;
  varied.variant_count = 2;
  for (const char* name : {"copies", "copies_untold"}) add(name).flags = 0;
  for (const char* name : {"eight_bits", "no_scale"})
    add(name).precisions = SPMMBENCH_SET(SPMMBENCH_FP8_E4M3_IN);
#if !defined(VERSION) || VERSION != 1
  for (const char* name : {"scales", "scales_alone"}) add(name).launch_scaled = launch_scaled;
  for (const char* name : {"takes_values", "keeps_its_values"}) {
    spmmbench_kernel& kernel = add(name);
    kernel.flags = 0;
    kernel.replace_values = replace_values;
  }
#endif
  spmmbench_kernel& shorter = add("without_launch_scaled");
  shorter.size = SPMMBENCH_KERNEL_SIZE_2;
#if defined(VERSION) && VERSION == 1
  shorter.size = model.size;
#endif
  add("claims_much");
  add("half_sums").accumulation = SPMMBENCH_SUMS_FP16;
  spmmbench_kernel& half_zeros = add("half_zeros");
  half_zeros.accumulation = SPMMBENCH_SUMS_FP16;
  half_zeros.precisions = SPMMBENCH_SET(SPMMBENCH_FP16_IN);
  for (const char* name : {"tells", "tells_of_fp32"}) {  // in which type A's values come
    spmmbench_kernel& kernel = add(name);
    kernel.precisions = 0xF;
    if (is(&kernel, "tells"))
      kernel.a_value_types |= SPMMBENCH_SET(SPMMBENCH_F16) | SPMMBENCH_SET(SPMMBENCH_BF16);
  }
  for (const char* name :
       {"picky", "adds_unasked", "crash_in_prepare", "crash_in_launch", "throws", "throws_an_int",
        "no_memory", "gives_nothing", "strange_status", "hang", "no_launch", "fails", "beyond",
        "before", "exits", "throws_in_launch", "prints", "crash_in_destroy", "throws_in_destroy"})
    add(name);
  for (const char* name : {"is_silent", "gives_no_plan", "negative_size", "refuses_exact",
                           "no_memory_for_exact", "prepares_late", "prints_no_line",
                           "ends_otherwise", "load_stage", "many_stages", "leaks", "stale"})
    add(name);
  for (const char* name : {"nan_stage", "negative_stage", "unnamed_stage", "nan_fill",
                           "infinite_flops", "huge_bytes", "lone_param", "leaks_pages", "paints"})
    add(name);
  return kernels;
}

}  // namespace

// Names by which the program takes the time. Who called these would not go on.
extern "C" int clock_gettime(int, void*) {
  crash();
  return 0;
}
extern "C" int cudaEventElapsedTime(float*, void*, void*) {
  crash();
  return 0;
}

extern "C" const spmmbench_library* spmmbench_kernels(uint32_t abi_version) {
#ifdef ENTRY_THROWS
  throw std::runtime_error("thrown on purpose");
#endif
  static const std::vector<spmmbench_kernel> kernels = describe();
  static const std::vector<const spmmbench_kernel*> pointers = [] {
    std::vector<const spmmbench_kernel*> out;
    for (const spmmbench_kernel& kernel : kernels) out.push_back(&kernel);
    return out;
  }();
#ifndef VERSION
#define VERSION SPMMBENCH_ABI_VERSION
#endif
  static const spmmbench_library library = {
      sizeof library,        VERSION, "flags", "1", pointers.data(), pointers.size(),
      [] { return message; }};
  return abi_version == VERSION ? &library : nullptr;
}
