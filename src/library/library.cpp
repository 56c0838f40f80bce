// libspmmbench.so: the registered kernels behind the C interface of include/spmmbench/plugin.h.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "gpu/backend.hpp"
#include "gpu/scaled_launches.hpp"
#include "library/arguments.hpp"
#include "library/entry.hpp"
#include "library/given_a.hpp"
#include "library/shared_device.hpp"
#include "library/status.hpp"
#include "plugin/description.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/plugin.h"
#include "spmmbench/registry.hpp"
#include "spmmbench/starts_at_once.hpp"

namespace spmmbench {
namespace {

#define SPMMBENCH_SAME(id, name, exponent, fraction, number, ...) \
  static_assert(number == static_cast<int>(ElementType::id));
SPMMBENCH_ELEMENT_TYPES(SPMMBENCH_SAME)
#undef SPMMBENCH_SAME
#define SPMMBENCH_SAME(id, name, type, fraction, number, ...) \
  static_assert(number == static_cast<int>(Precision::id));
SPMMBENCH_PRECISIONS(SPMMBENCH_SAME)
#undef SPMMBENCH_SAME
static_assert(SPMMBENCH_ROW_MAJOR == static_cast<int>(Layout::row_major) &&
              SPMMBENCH_COL_MAJOR == static_cast<int>(Layout::col_major));
static_assert(SPMMBENCH_SUMS_FP32 == static_cast<int>(Accumulation::fp32_fma) &&
              SPMMBENCH_SUMS_TENSOR_CORE == static_cast<int>(Accumulation::fp32_tensor_core) &&
              SPMMBENCH_SUMS_FP16 == static_cast<int>(Accumulation::fp16));
static_assert(SPMMBENCH_HOST == static_cast<int>(DeviceKind::host) &&
              SPMMBENCH_CUDA == static_cast<int>(DeviceKind::cuda));

// The receiver may call the library, so that no lock is held here.
void pass_on(const StageTimer& measured, const spmmbench_stages* stages) {
  if (stages == nullptr) return;
  const spmmbench_stages& receiver = checked(stages, "spmmbench_stages");
  const auto& add = required(receiver.add, "spmmbench_stages.add");
  for (const auto& [stage, ms] : measured.stages_ms()) add(receiver.context, stage.c_str(), ms);
}

const Kernel& kernel_of(const spmmbench_kernel* given) {
  return *static_cast<const Entry*>(checked(given, "spmmbench_kernel").user)->kernel;
}

}  // namespace
}  // namespace spmmbench

// A as a kernel prepared it. Members that `prepared` points to are declared before it.
struct spmmbench_prepared {
  const spmmbench::Kernel* kernel;
  spmmbench::SharedDevice* shared;
  std::optional<spmmbench::GivenA> a;
  std::vector<std::int32_t> row_ids;
  std::unique_ptr<spmmbench::RowOrders> orders;
  spmmbench::Problem problem;  // its shape is not used
  std::unique_ptr<spmmbench::Prepared> prepared;
  std::uint64_t bytes_to_host = 0;    // in prepare
  std::uint64_t not_waited = 0;       // UNCHECKED or CHECKED_LATE where nobody waits for A
  bool in_order = false;              // nobody waits for preparations
  std::atomic<bool> unwaited{false};  // the last one, until a launch on another stream waits
  bool has_new_values = false;        // perhaps on a stream that is not waited for
  // Until the check of an A that was read ahead is known to be good; for ever where it is not.
  std::atomic<bool> pending{false};
};

struct spmmbench_plan {
  spmmbench_prepared* prepared;
  spmmbench::DenseView b, c;  // what a launch must be given, without memory and ld
  std::unique_ptr<spmmbench::Plan> plan;
  std::optional<spmmbench::ScaledLaunches> launches = {};
  bool inspected = false;           // inspect_b was called
  std::uint64_t bytes_to_host = 0;  // in prepare and bind
  struct Told {
    spmmbench::PlanReport report;
    std::vector<const char*> params;
  };
  std::deque<Told> told;  // what report() has returned pointers into
};

namespace spmmbench {
namespace {

// Whether no form of A is built before a first launch.
bool starts_with_plain_csr(const Kernel& kernel, const Options& options) {
  const auto* const starts = dynamic_cast<const StartsAtOnce*>(&kernel);
  return starts != nullptr ? starts->starts_at_once(options) : kernel.info().reads_plain_csr;
}

std::uint64_t flags_of(const spmmbench_problem& problem) {
  if (!has_member(problem, &spmmbench_problem::flags)) return 0;
  constexpr std::uint64_t kEither = SPMMBENCH_UNCHECKED | SPMMBENCH_CHECKED_LATE;
  if ((problem.flags & ~(SPMMBENCH_TRANSPOSED | kEither)) != 0 ||
      (problem.flags & kEither) == kEither)
    throw Error(
        fmt::format("spmmbench_problem.flags {}: expected a sum of TRANSPOSED and UNCHECKED "
                    "or CHECKED_LATE",
                    problem.flags));
  return problem.flags;
}

// Of what `out` has of A.
void describe_operand(spmmbench_prepared& out, Precision precision) {
  out.orders = make_row_orders(out.a->host(), Spec{"none", {}});
  out.problem.a = out.a->host();
  out.problem.on_device = out.a->on_device();
  out.problem.row_ids = out.row_ids;
  out.problem.precision = precision;
  out.problem.orders = out.orders.get();
}

// A prepared object without the kernel's own form of A.
std::unique_ptr<spmmbench_prepared> read_problem(const spmmbench_kernel* c_kernel,
                                                 const spmmbench_problem* given,
                                                 StageTimer& stages) {
  const Kernel& kernel = kernel_of(c_kernel);
  const spmmbench_problem& problem = checked(given, "spmmbench_problem", SPMMBENCH_PROBLEM_SIZE_1);
  std::uint64_t flags = flags_of(problem);
  const spmmbench_csr& csr = checked(problem.a, "spmmbench_csr", SPMMBENCH_CSR_SIZE_1);
  const auto precision = read_precision(problem.precision);
  if (csr.memory != SPMMBENCH_HOST && csr.memory != SPMMBENCH_CUDA)
    throw Error(fmt::format("spmmbench_csr: memory {}: expected HOST or CUDA", csr.memory));
  if (csr.values == nullptr && csr.nnz > 0 && !kernel.info().binary)
    throw Error("spmmbench_csr: values is NULL");
  auto out = std::make_unique<spmmbench_prepared>();
  out->kernel = &kernel;
  out->shared = &shared_device(kernel.info().device);
  SharedDevice& memory =
      csr.memory == SPMMBENCH_CUDA ? shared_device(DeviceKind::cuda) : *out->shared;
  out->problem.options = read_options(problem.options, kernel);
  const bool stays_there = csr.memory == SPMMBENCH_CUDA && kernel.info().device == DeviceKind::cuda;
  if (!stays_there || !starts_with_plain_csr(kernel, out->problem.options))
    flags &= ~std::uint64_t{SPMMBENCH_CHECKED_LATE};
  out->pending = (flags & SPMMBENCH_CHECKED_LATE) != 0;
  out->in_order = out->pending || ((flags & SPMMBENCH_UNCHECKED) != 0 && stays_there);
  if (out->in_order) out->not_waited = flags & (SPMMBENCH_UNCHECKED | SPMMBENCH_CHECKED_LATE);
  out->unwaited = out->in_order;
  const Turn turn(memory, out->in_order);
  const std::uint64_t before = memory.device->bytes_to_host();
  const bool to_device = kernel.info().takes_values || kernel.info().prepares_on_device;
  out->a.emplace(csr, precision, flags, to_device, *out->shared->device, *memory.device, stages);
  out->row_ids = read_row_ids(csr, *memory.device);
  out->bytes_to_host = memory.device->bytes_to_host() - before;
  if ((flags & SPMMBENCH_TRANSPOSED) != 0 && !out->row_ids.empty())
    throw Error("spmmbench_csr.row_ids: expected NULL with TRANSPOSED");
  describe_operand(*out, precision);
  return out;
}

Problem with_shape(const spmmbench_prepared& prepared, const Shape& shape) {
  return Problem{prepared.problem.operand(), shape, prepared.problem.options};
}

Support require_support(const spmmbench_prepared& prepared, const Shape& shape) {
  check_bytes(prepared.a->rows(), prepared.a->cols(), prepared.problem.precision, shape);
  Support support =
      check_support(*prepared.kernel, with_shape(prepared, shape), prepared.shared->device->info());
  if (!support.ok) throw Unsupported(support.reason);
  return support;
}

spmmbench_status supports(const spmmbench_kernel* kernel, const spmmbench_problem* problem,
                          const spmmbench_shape* shape, std::uint64_t* device_bytes) noexcept {
  return guarded([&] {
    StageTimer stages;
    const auto prepared = read_problem(kernel, problem, stages);
    prepared->a->finish_check();
    const Support support = require_support(*prepared, read_shape(shape));
    if (device_bytes != nullptr) *device_bytes = support.device_bytes;
  });
}

// Brings what `out` has of A into the kernel's own form. The caller has its turn on the device.
void prepare_kernel(spmmbench_prepared& out, StageTimer& measured) {
  Device& device = *out.shared->device;
  const std::uint64_t before = device.bytes_to_host();
  const Support support =
      check_operand(*out.kernel, out.problem.operand(), out.problem.options, device.info());
  if (!support.ok) throw Unsupported(support.reason);
  out.prepared = out.kernel->prepare(out.problem, out.problem.options, device, measured);
  if (!out.in_order) device.synchronize();
  out.bytes_to_host += device.bytes_to_host() - before;
}

spmmbench_status prepare(const spmmbench_kernel* kernel, const spmmbench_problem* problem,
                         const spmmbench_stages* stages, spmmbench_prepared** prepared) noexcept {
  return guarded([&] {
    required(prepared, "prepared");
    StageTimer measured;
    std::unique_ptr<spmmbench_prepared> out = read_problem(kernel, problem, measured);
    Turn turn(*out->shared, out->in_order);
    prepare_kernel(*out, measured);
    turn.end();
    pass_on(measured, stages);
    *prepared = out.release();
  });
}

spmmbench_status bind(spmmbench_prepared* prepared, const spmmbench_shape* given,
                      const spmmbench_stages* stages, spmmbench_plan** plan) noexcept {
  return guarded([&] {
    required(plan, "plan");
    const Shape shape = read_shape(given);
    const spmmbench_prepared& of_a = required(prepared, "prepared");
    Turn turn(*of_a.shared, of_a.in_order);
    Device& device = *prepared->shared->device;
    const std::uint64_t before = device.bytes_to_host();
    (void)require_support(*prepared, shape);
    StageTimer measured;
    auto out = std::make_unique<spmmbench_plan>();
    out->prepared = prepared;
    const Problem& a = prepared->problem;
    out->b = {nullptr, a.k(), shape.n, 0, shape.layout, storage_type(a.precision)};
    out->c = {nullptr, a.m(), shape.n, 0, shape.layout, shape.c_type};
    out->plan = prepared->prepared->bind(shape, measured);
    out->launches.emplace(*out->plan, prepared->kernel->info(), device);
    if (prepared->pending) prepared->a->mark();
    if (prepared->in_order) prepared->unwaited = true;
    else device.synchronize();
    out->bytes_to_host = prepared->bytes_to_host + device.bytes_to_host() - before;
    turn.end();
    pass_on(measured, stages);
    *plan = out.release();
  });
}

spmmbench_status inspect_b(spmmbench_plan* plan, const spmmbench_dense* b,
                           const spmmbench_stages* stages) noexcept {
  return guarded([&] {
    SharedDevice& shared = *required(plan, "plan").prepared->shared;
    std::unique_lock lock(shared.mutex);
    StageTimer measured;
    plan->plan->inspect_b(read_dense(b, plan->b, "B", shared.device->info().kind), measured);
    shared.device->synchronize();
    plan->inspected = true;
    lock.unlock();
    pass_on(measured, stages);
  });
}

// Waits for the check of an A that was read ahead, if there is one, and with it for what was
// enqueued before its mark. The caller has locked the device.
void finish_check(spmmbench_prepared& prepared) {
  if (!prepared.pending) return;
  prepared.a->finish_check();
  prepared.pending = prepared.in_order = prepared.unwaited = false;
}

// Waits for preparations that nobody has waited for.
void wait_for_preparation(spmmbench_prepared& prepared) {
  if (!prepared.unwaited) return;
  const std::scoped_lock lock(prepared.shared->mutex);
  prepared.shared->device->wait_idle();
  finish_check(prepared);
  prepared.unwaited = false;
}

// To be called before work of the prepared object is enqueued on a stream of the caller.
void follow_preparation(spmmbench_prepared& prepared, void* stream) {
  if (is_default(stream)) return;
  prepared.shared->has_other_streams = true;
  if (prepared.unwaited && prepared.shared->device->is_capturing(Stream{stream}))
    throw Error("preparation may still be running: settle the plan before a capture");
  wait_for_preparation(prepared);
}

spmmbench_status launch_scaled(spmmbench_plan* plan, const spmmbench_dense* b,
                               const spmmbench_dense* c, double alpha, double beta,
                               void* stream) noexcept {
  return guarded([&] {
    if (!std::isfinite(alpha) || !std::isfinite(beta))
      throw Error(fmt::format("alpha {}, beta {}: expected finite numbers", alpha, beta));
    const KernelInfo& info = required(plan, "plan").prepared->kernel->info();
    if (info.inspects_b && !plan->inspected)
      throw Error(fmt::format("{}: inspect_b must be called before the first launch", info.name));
    const DeviceKind kind = info.device;
    spmmbench_prepared& of_a = *plan->prepared;
    follow_preparation(of_a, stream);
    std::unique_lock lock(of_a.shared->mutex, std::defer_lock);
    const Scalars scalars = rounded({alpha, beta}, of_a.problem.precision);
    // The last two may allocate.
    if (of_a.pending || plan->plan->prepares_next() || !scalars.plain()) lock.lock();
    if (of_a.pending) of_a.a->require_not_refused();
    plan->launches->launch(read_dense(b, plan->b, "B", kind), read_dense(c, plan->c, "C", kind),
                           scalars, Stream{stream});
    finish_check(of_a);  // while the GPU multiplies
  });
}

spmmbench_status launch(spmmbench_plan* plan, const spmmbench_dense* b, const spmmbench_dense* c,
                        void* stream) noexcept {
  return launch_scaled(plan, b, c, 1, 0, stream);
}

spmmbench_status settle(spmmbench_plan* plan, const spmmbench_stages* stages) noexcept {
  return guarded([&] {
    SharedDevice& shared = *required(plan, "plan").prepared->shared;
    wait_for_preparation(*plan->prepared);
    std::unique_lock lock(shared.mutex);
    StageTimer measured;
    plan->plan->settle(measured);
    shared.device->synchronize();
    lock.unlock();
    pass_on(measured, stages);
  });
}

spmmbench_status replace_values(spmmbench_prepared* prepared, const void* values,
                                std::int32_t value_type, std::int32_t memory,
                                void* stream) noexcept {
  return guarded([&] {
    spmmbench_prepared& own = required(prepared, "prepared");
    if (values == nullptr && own.problem.nnz() > 0) throw Error("values is NULL");
    if (own.pending) wait_for_preparation(own);
    if (memory != SPMMBENCH_HOST && memory != SPMMBENCH_CUDA)
      throw Error(fmt::format("memory {}: expected HOST or CUDA", memory));
    SharedDevice& values_device =
        memory == SPMMBENCH_CUDA ? shared_device(DeviceKind::cuda) : *own.shared;
    follow_preparation(own, stream);
    const std::scoped_lock lock(own.shared->mutex);
    own.has_new_values = true;
    own.a->replace_values(values, read_element_type(value_type), memory, Stream{stream},
                          *values_device.device, *own.prepared);
  });
}

spmmbench_status is_symmetric(spmmbench_prepared* prepared, std::int32_t* symmetric) noexcept {
  return guarded([&] {
    spmmbench_prepared& own = required(prepared, "prepared");
    std::int32_t& told = required(symmetric, "symmetric");
    const std::scoped_lock lock(own.shared->mutex);
    finish_check(own);
    if (own.shared->has_other_streams) own.shared->device->wait_idle();  // which may give values
    told = own.a->is_symmetric() ? 1 : 0;
  });
}

spmmbench_status transpose(spmmbench_prepared* prepared, const spmmbench_stages* stages,
                           spmmbench_prepared** transposed) noexcept {
  return guarded([&] {
    required(transposed, "transposed");
    spmmbench_prepared& of = required(prepared, "prepared");
    if (!of.row_ids.empty()) throw Unsupported("the rows of A are permuted: give `prepare` A^T");
    auto out = std::make_unique<spmmbench_prepared>();
    out->kernel = of.kernel;
    out->shared = of.shared;
    out->problem.options = of.problem.options;
    out->not_waited = of.not_waited;
    out->unwaited = out->in_order = of.not_waited != 0;
    out->pending = (of.not_waited & SPMMBENCH_CHECKED_LATE) != 0;
    StageTimer measured;
    Turn turn(*of.shared, out->in_order);
    if (of.has_new_values && of.shared->has_other_streams) of.shared->device->wait_idle();
    out->a.emplace(*of.a, of.not_waited, measured);
    finish_check(of);  // while the GPU makes A^T
    describe_operand(*out, of.problem.precision);
    prepare_kernel(*out, measured);
    turn.end();
    pass_on(measured, stages);
    *transposed = out.release();
  });
}

spmmbench_status report(spmmbench_plan* plan, spmmbench_report* out) noexcept {
  return guarded([&] {
    (void)checked(out, "spmmbench_report", SPMMBENCH_REPORT_SIZE_1);
    required(plan, "plan").told.push_back({.report = plan->plan->report(), .params = {}});
    auto& [report, params] = plan->told.back();
    if (report.pick) {
      report.params.insert({{"picked", report.pick->kernel}, {"why", report.pick->why}});
      if (report.pick->measured()) report.params["measured"] = measured_text(*report.pick);
    }
    for (const auto& [key, value] : report.params) {
      params.push_back(key.c_str());
      params.push_back(value.c_str());
    }
    params.push_back(nullptr);
    out->device_bytes =
        report.device_bytes + plan->launches->device_bytes() + plan->prepared->a->device_bytes();
    if (has_member(*out, &spmmbench_report::bytes_to_host))
      out->bytes_to_host = plan->bytes_to_host;
    out->issued_flops = report.issued_flops.value_or(0);
    out->params = params.data();
    if (!report.format) return;
    const FormatStats& format = *report.format;
    out->format = format.name.c_str();
    out->format_bytes = format.bytes;
    out->format_index_bytes = format.index_bytes;
    out->stored = format.stored;
    out->tiles = format.tiles;
    out->windows = format.windows;
    out->fill = format.fill;
  });
}

void destroy_plan(spmmbench_plan* plan) noexcept { delete plan; }
void destroy_prepared(spmmbench_prepared* prepared) noexcept { delete prepared; }

void set_functions(const KernelInfo& info, spmmbench_kernel& c) {
  c.supports = supports;
  c.prepare = prepare;
  c.bind = bind;
  c.inspect_b = info.inspects_b ? inspect_b : nullptr;
  c.launch = launch;
  c.launch_scaled = launch_scaled;
  c.report = report;
  c.settle = settle;
  c.destroy_plan = destroy_plan;
  c.destroy_prepared = destroy_prepared;
  c.replace_values = info.takes_values ? replace_values : nullptr;
  c.is_symmetric = is_symmetric;
  c.transpose = transpose;
}

struct Library {
  explicit Library(std::uint32_t abi_version) {
    const auto kernels = Registry<Kernel>::instance().sorted();
    const bool has_cuda = std::any_of(kernels.begin(), kernels.end(), [](const Kernel* kernel) {
      return kernel->info().device == DeviceKind::cuda;
    });
    entries.resize(kernels.size());
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      describe(*kernels[i], has_cuda, entries[i]);
      set_functions(kernels[i]->info(), entries[i].c);
      pointers.push_back(&entries[i].c);
    }
    c = {.size = sizeof(spmmbench_library),
         .abi_version = abi_version,
         .name = "spmmbench",
         .version = SPMMBENCH_VERSION,
         .kernels = pointers.data(),
         .kernel_count = pointers.size(),
         .last_error = [] { return last_error.c_str(); }};
  }
  std::vector<Entry> entries;
  std::vector<const spmmbench_kernel*> pointers;
  spmmbench_library c;
};

}  // namespace
}  // namespace spmmbench

extern "C" const spmmbench_library* spmmbench_kernels(std::uint32_t abi_version) {
  // Used until the program ends. Callers of version 1 do not see what was added.
  static const auto& first = *new spmmbench::Library(1);
  static const auto& second = *new spmmbench::Library(2);
  static_assert(SPMMBENCH_ABI_VERSION == 2);
  return abi_version == 1 ? &first.c : abi_version == 2 ? &second.c : nullptr;
}
