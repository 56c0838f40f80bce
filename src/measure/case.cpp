#include "measure/case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cfenv>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "core/steady_seconds.hpp"
#include "gpu/backend.hpp"
#include "gpu/scaled_launches.hpp"
#include "measure/bit_checks.hpp"
#include "measure/calls_curve.hpp"
#include "measure/case_checks.hpp"
#include "measure/case_times.hpp"
#include "measure/exact_test.hpp"
#include "measure/preparation.hpp"
#include "measure/repeat.hpp"
#include "process/interrupt.hpp"
#include "process/new_threads.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/picking.hpp"
#include "spmmbench/registry.hpp"

namespace spmmbench {
namespace {

// Useful operations of a launch.
double flops_of(const CaseInput& input) {
  return 2.0 * static_cast<double>(input.problem.nnz()) * static_cast<double>(input.problem.n) *
         static_cast<double>(input.members);
}

// Whether the kernel picks others, and can be told which. What else it says of a pick is not heard.
bool picks(const CaseInput& input) {
  return dynamic_cast<const BindsPick*>(input.prepared->kernel_a.get()) != nullptr;
}

// What the program finds out about a row is not what its kernel says of itself.
void refuse_own_metrics(const PlanReport& report) {
  constexpr std::array kMeasuredHere = {
      "a_not_finite",      "a_rounded_to_zero", "a_scale",         "a_scale_log2",
      "a_scales",          "b_scale",           "b_scales",        "bits_equal",
      "bits_predicted",    "elsewhere_ms",      "first_launch_us", "first_prepare_ms",
      "gpu_processes",     "inspect_b_us",      "launch_stall_ms", "least_us",
      "preemptions_per_s", "prepare_wall_ms",   "processors_used", "thread_ms",
      "throttle_reasons",  "throttled_repeats", "zero_c_us"};
  for (const char* own : kMeasuredHere)
    if (report.metrics.contains(own))
      throw Error(fmt::format("reports '{}', which the program measures itself", own));
}

void fill_from_plan(const Plan& plan, const CaseInput& input, ResultRow& row) {
  PlanReport report = plan.report();
  refuse_own_metrics(report);
  row.device_bytes = report.device_bytes;
  row.format = std::move(report.format);
  row.params = std::move(report.params);
  if (picks(input)) row.pick = std::move(report.pick);
  row.issued_flops = report.issued_flops.value_or(flops_of(input));
  row.metrics.merge(report.metrics);
}

// Rounding to nearest, and subnormal numbers that are not flushed to zero, in all threads: another
// kernel, or the constructor of a library, may have chosen otherwise.
void use_default_arithmetic() {
#pragma omp parallel
  std::fesetenv(FE_DFL_ENV);
}

// Keeps the stream busy for 0.1 ms and more. A launch that does not wait for its stream then writes
// C before the stream poisons it, and is found out.
void hold_stream(Device& device) {
  constexpr int kFlushes = 4;  // each reads twice the size of the L2 cache
  if (device.info().kind != DeviceKind::cuda) return;
  for (int i = 0; i < kFlushes; ++i) device.flush_cache();
}

// The kernel that `plan` launches, also where it is one that it picked.
KernelChoice launched_by(const Plan& plan, const CaseInput& input) {
  const PlanReport report = plan.report();
  if (!report.pick || !picks(input)) return *input.choice;
  const Spec spec = Spec::parse(report.pick->kernel);
  const Kernel* const kernel = Registry<Kernel>::instance().find(spec.name);
  if (kernel == nullptr) throw Error("names a kernel as its pick that there is not");
  return {kernel, spec.options};
}

ExactSetting exact_setting(const CaseInput& input) {
  return {input.problem, *input.exact, input.operands->c, *input.device,
          input.take_c,  input.update, input.members};
}

// The kernel that is timed is tested, and told what to pick: a choice with the values of the test
// could be another.
ExactOutcome test_exactly(const CaseInput& input, const KernelChoice& launched) {
  PreparedA& prepared = *input.prepared;
  if (prepared.exact_kernel != launched.label()) prepared.exact_a.reset();
  prepared.exact_kernel = launched.label();
  ExactSetting setting = exact_setting(input);
  setting.problem.options = input.choice->options;
  if (launched.kernel != input.choice->kernel) setting.pick = launched.label();
  return run_exact_test(*input.choice->kernel, setting, prepared.exact_a);
}

// The input of a case whose exact test is of a kernel that another picked. Where all that could
// have been picked have too few bits for A's rows, and this one has more, it has operands of its
// own.
class OperandsOfPick {
 public:
  OperandsOfPick(const CaseInput& input, const KernelChoice& launched) : input_(input) {
    const int bits = exact_sum_bits(launched.info(), input.problem.precision, input.problem.c_type,
                                    input.scalars());
    if (launched.kernel == input.choice->kernel || bits <= input.exact->sum_bits() ||
        input.exact->can_be_made())
      return;
    own_.emplace(input.exact->with_sum_bits(bits));
    input_.exact = &*own_;
    input_.prepared->exact_a.reset();
  }
  OperandsOfPick(const OperandsOfPick&) = delete;
  ~OperandsOfPick() {
    if (own_) input_.prepared->exact_a.reset();  // before its A
  }
  const CaseInput& input() const { return input_; }

 private:
  CaseInput input_;
  std::optional<ExactOperands> own_;
};

// Whether the plan that is timed can have the operands of the exact test. In 8 bits A keeps a scale
// with which sums are not exact, and a kernel that looks at B in advance keeps its B.
bool takes_exact_values(const CaseInput& input, const KernelChoice& launched) {
  const Kernel* const kernel = input.choice->kernel;
  const bool is_there =
      input.device->info().kind == DeviceKind::host || input.problem.on_device != nullptr;
  return launched.kernel == kernel && kernel->info().takes_values && is_there &&
         !kernel->info().inspects_b && !is_scaled(input.problem.precision);
}

void measure_several_calls(const CaseInput& input, ResultRow& row) {
  Problem problem = input.problem;
  if (input.a_lies_on() == DeviceKind::host) problem.on_device = nullptr;
  row.calls_us =
      measure_calls_curve(*input.choice, problem, input.reorder, *input.operands, input.calls_curve,
                          *input.device, input.scalars(), input.members);
}

// The first of them is timed, from an idle device: a plan may prepare in it.
void verify_two_launches(const CaseInput& input, const std::function<void()>& launch,
                         ResultRow& row) {
  Device& device = *input.device;
  for (int pass = 0; pass < 2; ++pass) {
    const bool first = pass == 0;
    if (!first) hold_stream(device);
    start_c(input);
    if (first) device.synchronize();
    const OwnSeconds since(launching_threads(device.info().kind));
    launch();
    device.synchronize();
    if (first) {
      row.metrics["first_launch_us"] = since.passed() * 1e6;
      StageTimer stages;
      add_unfinished_work(device, Unfinished::everywhere, stages);
      add_stages(stages, row);
    }
    take_c(input);
    if (!verify(input, row)) break;
    poll_interrupt();
  }
}

bool is_unproved(const CaseInput& input, ResultRow& row) {
  const std::string why = why_unproved(input, row);
  if (why.empty()) return false;
  row.status = Status::failed;
  row.reason = "cannot be verified: " + why;
  return true;
}

// The exact test of the plan that was timed.
bool passes_exactly(const CaseInput& input, const KernelInfo& kernel, ScaledLaunches& launches,
                    ResultRow& row) {
  row.exact = test_timed_plan(exact_setting(input), kernel, *input.prepared, launches);
  if (!row.exact->passed && row.exact->not_made.empty()) {
    row.status = Status::wrong;
    row.reason = describe_failure(input, row);
    return false;
  }
  return !is_unproved(input, row);
}

// A case that ended early may have left them damaged.
void mend_operands(const Operands& operands, Device& device) {
  if (is_intact(operands, device)) return;
  (void)wrote_to_b(operands, device);
  (void)damage_around_c(operands, device);
}

// What a plan of its own showed, where the timed one cannot take the values of the exact test.
struct OwnExactTest {
  std::string failure;  // empty where there is none
  double exact_ms = 0;  // of the kernel, where it prepares as it did for the case
};

OwnExactTest test_own_plan(const CaseInput& input, const KernelChoice& launched, ResultRow& row) {
  OwnExactTest out;
  OperandsOfPick of_pick(input, launched);
  const CaseInput& used = of_pick.input();
  ExactOutcome outcome = test_exactly(used, launched);
  row.exact = std::move(outcome.test);
  const KernelInfo& tested = launched.kernel->info();
  const bool alike = outcome.from_same_memory || !tested.prepares_on_device;
  if (alike && !tested.baseline) out.exact_ms = outcome.kernel_ms;
  if (!row.exact->passed && row.exact->not_made.empty()) out.failure = describe_failure(used, row);
  poll_interrupt();
  return out;
}

void note_bits(const CaseInput& input, Plan& plan, ResultRow& row) {
  const BitCheck bits = input.scalars().plain() ? check_bits(input, plan) : BitCheck{};
  if (bits.predicted == 0) return;
  row.metrics["bits_predicted"] = static_cast<double>(bits.predicted);
  row.metrics["bits_equal"] = static_cast<double>(bits.equal);
}

// The one launch of `profile`.
void launch_for_profiler(const CaseInput& input, const std::function<void()>& launch,
                         ResultRow& row) {
  const bool on_gpu = input.device->info().kind == DeviceKind::cuda;
  if (input.update.beta != 0) start_c(input);
  if (on_gpu)
    profiler_start(kProfileRange, fmt::format("{} n={} {} {} {}", row.matrix.name, row.n,
                                              row.kernel, row.precision, row.reorder));
  launch();
  if (on_gpu) profiler_stop();
  take_c(input);
  if (verify(input, row)) row.status = Status::ok;
}

bool passes_repeats(const CaseInput& input, const std::function<void()>& launch, ResultRow& row) {
  const Repeats repeats =
      repeat_launches(*input.device, input.choice->kernel->info(), input.operands->c,
                      start_and_launch(input, launch),
                      [&](bool known) { return verify(input, row, "a repeated launch: ", known); });
  row.bit_identical = repeats.same_bits;
  return repeats.right;
}

// Notes the processor time of threads that the kernel has begun.
void note_threads(const NewThreads& threads, const Device& device, ResultRow& row) {
  constexpr double kLeastMs = 5;  // several times what a driver's own threads work
  const double ms = device.info().kind == DeviceKind::cuda ? threads.seconds() * 1e3 : 0;
  if (ms > kLeastMs) row.metrics["thread_ms"] = ms;
}

// Whether C is right after the calls of --calls-curve.
bool passes_several_calls(const CaseInput& input, ResultRow& row) {
  if (input.calls_curve.empty()) return true;
  measure_several_calls(input, row);
  take_c(input);
  return verify(input, row, "after several calls: ");
}

void fill_rates(const CaseInput& input, ResultRow& row) {
  row.gflops = flops_of(input) / row.hot->median_us / 1e3;
  row.compulsory_bytes = input.compulsory_bytes;
  row.bound_us = input.bound_us;
  row.of_bound = input.bound_us / row.hot->median_us;
}

void measure(const CaseInput& input, const SampleLimits& limits, ResultRow& row) {
  Device& device = *input.device;
  const Operands& operands = *input.operands;
  const KernelInfo& info = input.choice->kernel->info();

  row.a_memory = input.a_lies_on();
  const NewThreads threads;
  mend_operands(operands, device);
  MadePlan made = make_plan(input, row);
  const std::unique_ptr<Plan> plan = std::move(made.plan);
  KernelChoice launched = *input.choice;
  if (input.exact != nullptr) {
    const OwnSeconds since(Threads::caller);
    launched = launched_by(*plan, input);
    made.other_ms += since.passed() * 1e3;
  }
  const bool tests_timed_plan = input.exact != nullptr && takes_exact_values(input, launched);
  const OwnExactTest own_test = input.exact != nullptr && !tests_timed_plan
                                    ? test_own_plan(input, launched, row)
                                    : OwnExactTest{};
  input.reference->expect(input.update);
  ScaledLaunches launches(*plan, info, device);
  const auto launch = [&] {
    launches.launch(operands.b, operands.c, input.scalars(), device.stream());
  };
  verify_two_launches(input, launch, row);
  const OwnSeconds since(Threads::caller);
  fill_from_plan(*plan, input, row);
  made.other_ms += since.passed() * 1e3;
  add_hidden_work(made, own_test.exact_ms, device.info(), row);
  *row.device_bytes += launches.device_bytes();
  if (row.status == Status::wrong) return;
  if (!own_test.failure.empty()) {
    row.status = Status::wrong;
    row.reason = own_test.failure;
    return;
  }
  if (is_unproved(input, row)) return;
  note_bits(input, *plan, row);

  if (input.one_launch) return launch_for_profiler(input, launch, row);
  if (input.repeat_check && !passes_repeats(input, launch, row)) return;
  if (!take_times(input, limits, launches, row)) return;
  note_threads(threads, device, row);
  if (!passes_several_calls(input, row) ||
      (tests_timed_plan && !passes_exactly(input, info, launches, row))) {
    row.hot = row.cold = std::nullopt;
    return;
  }
  fill_rates(input, row);
  row.status = Status::ok;
}

}  // namespace

bool run_case(const CaseInput& input, const SampleLimits& limits, ResultRow& row) {
  use_default_arithmetic();
  const auto fail = [&row](const std::string& reason) {
    row.status = Status::failed;
    row.reason = reason;
  };
  const DeviceInfo& device = input.device->info();
  if (device.kind == DeviceKind::cuda) row.device_index = device.index;
  try {
    input.device->unreserve_cache();
    const double start = steady_seconds();
    const Support support = check_support(*input.choice->kernel, input.problem, device);
    const double support_ms = (steady_seconds() - start) * 1e3;
    if (support.ok && support_ms > kLeastStallMs) row.stages_ms["support"] = support_ms;
    std::size_t needed = support.device_bytes;
    if (input.operands != nullptr)
      needed += scaling_bytes(input.choice->kernel->info(), input.scalars(), input.operands->c);
    const auto fits = [&] { return needed <= input.device->free_bytes(); };
    const bool measurable = support.ok && input.operands != nullptr;
    if (measurable && !fits() && input.free_memory) input.free_memory();
    const auto skip = [&row](const std::string& reason) {
      row.status = Status::skipped;
      row.reason = reason;
    };
    const std::string alone =
        input.members > 1 ? why_no_batch(input.choice->kernel->info()) : std::string();
    if (!support.ok) {
      skip(support.reason);
    } else if (!alone.empty()) {
      skip(alone);
    } else if (input.operands == nullptr) {
      fail(input.operands_error);
    } else if (!fits()) {
      skip(out_of_memory(*input.device, needed));
    } else {
      measure(input, limits, row);
      StageTimer left;  // for the next case
      add_unfinished_work(*input.device, Unfinished::everywhere, left);
      add_stages(left, row);
      if (checksum_of_a(input.problem, *input.device) != input.a_checksum) {
        row.status = Status::wrong;
        row.reason = "A is not what it was: this kernel wrote to it, or one before";
        row.hot = row.cold = std::nullopt;
      }
    }
  } catch (const Interrupted&) {
    throw;
  } catch (const Unsupported& refusal) {
    row.status = Status::skipped;
    row.reason = refusal.what();
  } catch (const DeviceError& error) {
    fail(error.what());
    return !error.device_lost();
  } catch (const std::bad_alloc&) {
    fail("out of host memory");
  } catch (const std::exception& error) {
    fail(error.what());
  }
  return true;
}

std::string error_warning(const ResultRow& row) {
  const auto predicted = row.metrics.find("bits_predicted"), equal = row.metrics.find("bits_equal");
  if (row.status == Status::ok && predicted != row.metrics.end() && equal != row.metrics.end() &&
      equal->second < predicted->second)
    return fmt::format(
        "{} n={} {} {}: elements of C that are not what its order of sums gives to the bit: {} of "
        "{}",
        row.matrix.name, row.n, row.kernel, row.precision, predicted->second - equal->second,
        predicted->second);
  if (row.status != Status::ok || !row.verify || !(row.verify->error_over_typical > 1)) return {};
  return fmt::format(
      "{} n={} {} {}: the error is {:.2g} x what random rounding leaves and {:.2g} x the bound: "
      "sums that round to one side, or a fault that the bound hides",
      row.matrix.name, row.n, row.kernel, row.precision, row.verify->error_over_typical,
      row.verify->error_over_bound);
}

std::int64_t count_referenced_columns(const CsrMatrix& a) {
  std::vector<bool> referenced(a.cols, false);
  for (const std::int32_t col : a.col_idx) referenced[col] = true;
  return std::count(referenced.begin(), referenced.end(), true);
}

double compulsory_bytes(const CsrMatrix& a, std::int64_t n, Precision precision, ElementType c_type,
                        bool reads_c, std::optional<std::int64_t> referenced) {
  const std::int64_t columns = referenced ? *referenced : count_referenced_columns(a);
  const auto input_bytes = static_cast<double>(bytes_of(storage_type(precision)));
  const double pointer_bytes = a.nnz() < (std::int64_t{1} << 31) ? 4 : 8;
  return static_cast<double>(a.nnz()) * (4 + input_bytes) +
         static_cast<double>(a.rows + 1) * pointer_bytes +
         static_cast<double>(columns) * static_cast<double>(n) * input_bytes +
         static_cast<double>(a.rows) * static_cast<double>(n) *
             static_cast<double>((reads_c ? 2 : 1) * bytes_of(c_type));
}

}  // namespace spmmbench
