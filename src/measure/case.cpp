#include "measure/case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cfenv>
#include <limits>
#include <new>
#include <utility>

#include "core/contains.hpp"
#include "core/row_lengths.hpp"
#include "gpu/backend.hpp"
#include "measure/calls_curve.hpp"
#include "measure/exact_test.hpp"
#include "measure/repeat.hpp"
#include "measure/spot_checks.hpp"
#include "process/interrupt.hpp"
#include "process/preemptions.hpp"
#include "process/processor_seconds.hpp"
#include "spmmbench/error.hpp"
#include "spmmbench/registry.hpp"
#include "timing/quantiles.hpp"
#include "timing/sampler.hpp"
#include "timing/throttling.hpp"
#include "verify/bound.hpp"

namespace spmmbench {
namespace {

std::string describe(const Verdict& verdict) {
  return fmt::format("error {:.3g} x bound at C({}, {})", verdict.error_over_bound,
                     verdict.worst_row, verdict.worst_col);
}

std::string describe(const ExactTest& test) {
  return fmt::format("exact test: C({}, {}) differs from the reference", test.worst_row,
                     test.worst_col);
}

void fill_from_plan(const Plan& plan, const Problem& problem, ResultRow& row) {
  PlanReport report = plan.report();
  row.device_bytes = report.device_bytes;
  row.format = std::move(report.format);
  row.params = std::move(report.params);
  row.pick = std::move(report.pick);
  row.issued_flops = report.issued_flops.value_or(2.0 * static_cast<double>(problem.nnz()) *
                                                  static_cast<double>(problem.n));
  row.metrics.merge(report.metrics);
}

// A and a plan, with what making them took.
struct Preparation {
  std::unique_ptr<Prepared> a;  // null where an earlier case has prepared A
  StageTimer a_stages, stages;  // of A alone, and with the plan
  std::unique_ptr<Plan> plan;   // after `a`, which outlives it
  double inspection_us = 0;     // of a B that changes from product to product
  double processor_ms = 0;      // that all threads of this process worked

  double ms() const { return stages.total_ms(); }
  double plan_ms() const { return ms() - a_stages.total_ms(); }

  // A kernel that keeps what a preparation found does less in the next one.
  bool did_more_than(const Preparation& other) const {
    constexpr double kSameWorkMs = 5;  // loading code and touching memory for the first time
    return processor_ms > 2 * other.processor_ms + kSameWorkMs;
  }
};

// The plan of `made`, for an A that is prepared.
void bind(const CaseInput& input, Prepared& a, Preparation& made) {
  made.stages = made.a_stages;
  made.plan = a.bind(input.problem.shape(), made.stages);
  if (!input.b_is_drawn || !input.choice->kernel->info().inspects_b) {
    made.plan->inspect_b(input.operands->b, made.stages);
    return input.device->synchronize();
  }
  input.device->synchronize();
  StageTimer not_counted;
  const double start = steady_seconds();
  made.plan->inspect_b(input.operands->b, not_counted);
  input.device->synchronize();
  made.inspection_us = (steady_seconds() - start) * 1e6;
}

Preparation prepare(const CaseInput& input) {
  Preparation made;
  const double start = processor_seconds();
  made.a = input.choice->kernel->prepare(input.problem.operand(), input.problem.options,
                                         *input.device, made.a_stages);
  bind(input, *made.a, made);
  made.processor_ms = (processor_seconds() - start) * 1e3;
  return made;
}

// A plan for the A that an earlier case of another N has prepared.
Preparation prepare_shared(const CaseInput& input) {
  Preparation made;
  made.a_stages = input.prepared->stages;
  bind(input, *input.prepared->kernel_a, made);
  return made;
}

// Whether the preparation may have been held up by other work on the host. If an earlier case made
// A, it has repeated that part, so only the time of the plan counts.
bool may_be_held_up(const Preparation& made) {
  return made.ms() < kShortPreparationMs && (made.a || made.plan_ms() >= kLeastStallMs);
}

// A short preparation is made several times, and the fastest is kept: on a host that others use too
// a thread that has to wait adds milliseconds. On the CPU one that does much less work than another
// does not count, except those of vendors' libraries, which begin with what they do once in a
// process, as kernels on a GPU do whose code is loaded.
Preparation fastest_preparation(const CaseInput& input) {
  Preparation fastest = input.prepared->kernel_a ? prepare_shared(input) : prepare(input);
  const PlanReport report = fastest.plan->report();
  if (!may_be_held_up(fastest) || (report.pick && report.pick->measured()) || input.one_launch)
    return fastest;
  for (int i = 1; i < kShortPreparations; ++i) {
    if (report.device_bytes > input.device->free_bytes()) break;
    try {
      Preparation next = prepare(input);
      const bool compares = fastest.a != nullptr && !input.choice->kernel->info().baseline &&
                            input.device->info().kind == DeviceKind::host;
      const bool more = compares && next.did_more_than(fastest);
      if (!more && (next.ms() >= fastest.ms() || (compares && fastest.did_more_than(next))))
        continue;
      fastest.plan.reset();  // before its A
      fastest = std::move(next);
    } catch (const OutOfMemory&) {
      break;  // preparing needs more than what is kept, and the first is still there
    }
  }
  return fastest;
}

// The stages of the row are what a user of this row alone would pay. prepare_wall_ms is the time
// that this run spent: less where an earlier case, of another N, has prepared A, and more where the
// preparation was repeated.
std::unique_ptr<Plan> make_plan(const CaseInput& input, ResultRow& row) {
  const double start = steady_seconds();
  Preparation made = fastest_preparation(input);
  if (made.a) {
    input.prepared->kernel_a = std::move(made.a);
    input.prepared->stages = std::move(made.a_stages);
  }
  add_stages(made.stages, row);
  row.metrics["prepare_wall_ms"] = (steady_seconds() - start) * 1e3;
  if (made.inspection_us > 0) row.metrics["inspect_b_us"] = made.inspection_us;
  return std::move(made.plan);
}

// Saves what a wrong case had and gave, where that is asked for. Returns the end of its reason.
std::string save_wrong(const CaseInput& input, const Problem& problem, const DenseView& b,
                       const ResultRow& row) {
  if (!input.save_wrong) return {};
  std::string why;
  try {
    return fmt::format("; saved in {}", input.save_wrong(row, problem, b));
  } catch (const DeviceError& error) {
    if (error.device_lost()) throw;
    why = error.what();
  } catch (const std::bad_alloc&) {
    why = "out of host memory";
  } catch (const std::exception& error) {
    why = error.what();
  }
  return "; could not be saved: " + why;
}

// The same for the exact test, which has an A and a B of its own.
std::string save_exact_test(const CaseInput& input, const ResultRow& row) {
  if (!input.save_wrong) return {};
  Problem problem = input.problem;
  problem.a = &input.exact->a();
  return save_wrong(input, problem, input.exact->on_device(problem, *input.device).b, row);
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

void take_c(const CaseInput& input) {
  if (input.take_c) input.take_c();
}

std::function<void()> launch_and_take(const CaseInput& input, std::function<void()> launch) {
  return [&input, launch = std::move(launch)] {
    launch();
    take_c(input);
  };
}

ErrorBound bound_of(const CaseInput& input) {
  return error_bound(input.choice->info(), input.problem.precision, input.problem.c_type);
}

// Says why a C that was found right proves nothing; empty where it does. Without the exact test the
// bound alone is left, and where it is as large as |A||B| it lets zeros pass.
std::string why_unproved(const CaseInput& input, const ResultRow& row) {
  if (row.verify && row.verify->incomparable > 0)
    return fmt::format("whether {} elements of C overflow depends on the order of the sums",
                       row.verify->incomparable);
  const bool untested = row.exact && !row.exact->not_made.empty();
  if (const std::int64_t longest = untested ? longest_row(*input.problem.a) : 0;
      static_cast<double>(longest) * bound_of(input).unit >= 1)
    return fmt::format(
        "the error bound of a row of {} nonzeros lets zeros pass, and the exact test was not made: "
        "{}",
        longest, row.exact->not_made);
  // A C of zeros has 1. Where B is given, C may be small beside its rounding errors.
  constexpr double kMostRelative = 0.5;
  if (row.verify && row.verify->relative_frobenius > kMostRelative &&
      (input.b_is_drawn || untested))
    return fmt::format("the error of C is {:.2g} of C, which the bound of {} allows",
                       row.verify->relative_frobenius,
                       to_string(sum_type(input.choice->info(), input.problem.precision)));
  return {};
}

// Says how C differs from the reference; empty if it does not. Of several verdicts the row keeps
// the worst.
std::string fault_in_c(const CaseInput& input, ResultRow& row) {
  Verdict verdict = input.reference->check(input.operands->c, bound_of(input));
  if (input.b_is_drawn) {
    const double allowed = mean_error(*input.problem.a, input.problem.n, bound_of(input));
    verdict.error_over_mean = verdict.error_frobenius == 0 ? 0 : verdict.error_frobenius / allowed;
  }
  const double mean = row.verify ? std::max(row.verify->error_over_mean, verdict.error_over_mean)
                                 : verdict.error_over_mean;
  if (!row.verify || !(verdict.error_over_bound <= row.verify->error_over_bound))
    row.verify = verdict;
  row.verify->error_over_mean = mean;
  if (!verdict.ok) return describe(verdict);
  if (verdict.error_over_mean > 1)
    return fmt::format("all errors together are {:.3g} x what rounding leaves",
                       verdict.error_over_mean);
  return {};
}

void call_wrong(const CaseInput& input, ResultRow& row, const std::string& fault) {
  row.status = Status::wrong;
  row.reason = fault + save_wrong(input, input.problem, input.operands->b, row);
}

// Where C is wrong, or a launch wrote to B or outside of C, the row says so and the result is
// false. `which`: the launch, if it is one of several. `known`: C has the bits of one that was
// right.
bool verify(const CaseInput& input, ResultRow& row, const std::string& which = {},
            bool known = false) {
  const bool in_b = wrote_to_b(*input.operands, *input.device);  // the reference reads B
  const std::string in_c = known || in_b ? std::string() : fault_in_c(input, row);
  std::string fault = damage_around_c(*input.operands, *input.device);
  if (in_b) fault = "the kernel wrote to B";
  else if (fault.empty()) fault = in_c;
  if (fault.empty()) return true;
  call_wrong(input, row, which + fault);
  return false;
}

// The fastest rate at which this device was seen to write, in bytes per second: of a buffer that
// fits in the cache next to its cores. Infinity where there is no cache, or no memory for one.
double fastest_writes(Device& device) {
  constexpr std::size_t kMostBytes = std::size_t{16} << 10;  // of the cache of a processor's core
  constexpr int kTries = 5, kFills = 64;
  const bool on_host = device.info().kind == DeviceKind::host;
  const std::size_t bytes = on_host ? kMostBytes : device.info().l2_bytes / 4;
  if (bytes == 0 || bytes > device.free_bytes()) return std::numeric_limits<double>::infinity();
  const Buffer buffer = device.allocate(bytes);
  const auto fill = [&] { device.fill_bytes(buffer.data(), 0, bytes); };
  fill();
  double us = device.time_us(fill, kFills);
  for (int i = 1; i < kTries; ++i) us = std::min(us, device.time_us(fill, kFills));
  const int cores = on_host ? std::max(device.info().sm_count, 1) : 1;
  return cores * static_cast<double>(bytes) * kFills / (us * 1e-6);
}

// The time, in microseconds, that writing C takes at the least.
double least_us(const CaseInput& input) {
  constexpr double kMargin = 4;  // a choice: cores may run faster in another moment
  const Operands& operands = *input.operands;
  return static_cast<double>(operands.c.bytes()) / (kMargin * fastest_writes(*input.device)) * 1e6;
}

struct Times {
  Timing hot, cold;
};

// Says in the row how far the GPU kept its clocks up.
Timing take_steadily(Device& device, ResultRow& row, const std::function<Timing()>& sample) {
  SteadyTiming steady = sample_steadily(device, sample);
  if (steady.repeats > 0) row.metrics["throttled_repeats"] += steady.repeats;
  if (steady.reasons != 0) row.metrics["throttle_reasons"] = static_cast<double>(steady.reasons);
  return std::move(steady.timing);
}

// Throws WrongLaunch where a timed launch is found to be wrong. None where the C that the timed
// launches left is, or that of a later launch.
std::optional<Times> take_checked_times(const CaseInput& input, const SampleLimits& limits,
                                        const LaunchAt& launch, SpotChecks& checks,
                                        ResultRow& row) {
  // A batch that ends early shows what a launch in the middle of others does. On the average so
  // many of the samples are followed by one, and at least so many in all.
  constexpr int kSamplesForAShortBatch = 4, kFewestShortBatches = 8;
  Device& device = *input.device;
  const KernelInfo& info = input.choice->kernel->info();
  const SamplerOptions sampler{.by_host_clock = info.ignores_stream};
  // The checks after sampling must see what the timed launches wrote. So C is poisoned after any
  // recording, just before the first timed launch, and before every cold one: the flush that
  // follows leaves as little of C in the cache as the launch before it did.
  const auto poison_c = [&] {
    take_c(input);
    poison(input.operands->c, info, device);
  };
  const auto look = [&] {
    take_c(input);
    checks.after();
  };
  const auto launch_short_batch = [&](int most) {
    const int count = checks.length_up_to(most);
    checks.before(count);
    launch_batch(device, launch, count, sampler);
    look();
  };
  bool poisoned = false;
  int short_batches = 0;
  const AroundSample around_hot = {
      .before =
          [&](int launches) {
            poll_interrupt();
            if (!poisoned) poison_c();
            poisoned = true;
            device.unreserve_cache();
            checks.before(launches);
          },
      .after =
          [&](int launches) {
            look();
            if (launches == 1 || !checks.one_in(kSamplesForAShortBatch)) return;
            launch_short_batch(launches);
            ++short_batches;
          }};
  const Preemptions preemptions;
  Times times;
  times.hot = take_steadily(device, row, [&] {
    poisoned = false;
    return sample_hot(device, launch, limits, sampler, around_hot);
  });
  if (device.info().kind == DeviceKind::host) row.metrics["preemptions_per_s"] = preemptions.rate();
  const int batch = times.hot.launches_per_sample;
  for (; batch > 1 && short_batches < kFewestShortBatches; ++short_batches)
    launch_short_batch(batch);
  // The last batch of all has the B of the reference in its last launch.
  checks.restore();
  launch_batch(device, launch, 1 + (batch - 1) / checks.views() * checks.views(), sampler);
  take_c(input);
  if (!verify(input, row)) return std::nullopt;

  const AroundSample around_cold = {.before =
                                        [&](int launches) {
                                          poll_interrupt();
                                          poison_c();
                                          device.unreserve_cache();
                                          checks.before(launches);
                                        },
                                    .after = [&](int) { look(); }};
  times.cold = take_steadily(
      device, row, [&] { return sample_cold(device, launch, limits, sampler, around_cold); });
  checks.restore();
  poison_c();
  device.flush_cache();
  launch_batch(device, launch, 1, sampler);
  take_c(input);
  if (!verify(input, row)) return std::nullopt;
  // The C that the timed launches left shows that one of them worked, not that each did.
  const auto check = [&](bool known) { return verify(input, row, "a later launch: ", known); };
  const bool right = launches_stay_right(device, info, input.operands->c,
                                         launch_and_take(input, [&] { launch(0); }), check);
  return right ? std::optional(std::move(times)) : std::nullopt;
}

// What the plan needs to look at a B that changes counts with every product.
void add_inspection(const ResultRow& row, Timing& timing) {
  const auto inspection = row.metrics.find("inspect_b_us");
  if (inspection == row.metrics.end()) return;
  for (double& sample : timing.samples_us) sample += inspection->second;
  timing = summarise(std::move(timing.samples_us), timing.launches_per_sample);
}

// The time, in microseconds, of zeroing C, which is part of every launch of a kernel that adds to
// it.
double zeroing_us(const DenseView& c, int launches_per_sample, Device& device) {
  constexpr int kTries = 5;
  const auto zero = [&] { device.fill_bytes(c.data, 0, c.bytes()); };
  double us = device.time_us(zero, launches_per_sample);
  for (int i = 1; i < kTries; ++i) us = std::min(us, device.time_us(zero, launches_per_sample));
  return us / launches_per_sample;
}

// Fills the times of the row, or says that it is wrong and returns false.
bool take_times(const CaseInput& input, const SampleLimits& limits, Plan& plan, ResultRow& row) {
  Device& device = *input.device;
  const bool constant_b =
      input.choice->kernel->info().inspects_b || device.info().kind == DeviceKind::cuda;
  SpotChecks checks(*input.problem.a, input.problem.row_ids, *input.operands, bound_of(input),
                    input.problem.precision, constant_b, device);
  const LaunchAt launch = [&](int at) {
    plan.launch(checks.b(at), input.operands->c, device.stream());
  };
  std::optional<Times> times;
  try {
    times = take_checked_times(input, limits, launch, checks, row);
  } catch (const WrongLaunch& wrong) {
    checks.restore();
    if (!(wrong.verdict().error_over_bound <= row.verify->error_over_bound))
      row.verify = wrong.verdict();
    call_wrong(input, row, wrong.what());
  }
  if (!times) return false;
  if (const double least = least_us(input); times->hot.median_us < least) {
    call_wrong(input, row,
               fmt::format("takes {:.3g} us, and writing C alone takes {:.3g} us",
                           times->hot.median_us, least));
    return false;
  }
  if (input.choice->kernel->info().adds_to_c)
    row.metrics["zero_c_us"] =
        zeroing_us(input.operands->c, times->hot.launches_per_sample, device);
  add_inspection(row, times->hot);
  add_inspection(row, times->cold);
  row.hot = std::move(times->hot);
  row.cold = std::move(times->cold);
  return true;
}

// The kernel that `plan` launches. A plan that measured several names the one that it picked.
KernelChoice launched_by(const Plan& plan, const KernelChoice& choice) {
  const PlanReport report = plan.report();
  if (!report.pick || !report.pick->measured()) return choice;
  const Spec spec = Spec::parse(report.pick->kernel);
  return {Registry<Kernel>::instance().find(spec.name), spec.options};
}

// The kernel that is timed is tested: measuring with the values of the test could pick another.
ExactTest test_exactly(const CaseInput& input, const Plan& plan) {
  const KernelChoice launched = launched_by(plan, *input.choice);
  PreparedA& prepared = *input.prepared;
  if (prepared.exact_kernel != launched.label()) prepared.exact_a.reset();
  prepared.exact_kernel = launched.label();
  Problem problem = input.problem;
  problem.options = launched.options;
  return run_exact_test(*launched.kernel, problem, *input.exact, prepared.exact_a,
                        input.operands->c, *input.device, input.take_c);
}

void measure(const CaseInput& input, const SampleLimits& limits, ResultRow& row) {
  Device& device = *input.device;
  const Operands& operands = *input.operands;
  const KernelInfo& info = input.choice->kernel->info();

  // A case that ended early may have left them damaged.
  (void)wrote_to_b(operands, device);
  (void)damage_around_c(operands, device);
  const std::unique_ptr<Plan> plan = make_plan(input, row);
  std::string inexact;  // how the exact test failed; empty where it did not
  if (input.exact != nullptr) {
    row.exact = test_exactly(input, *plan);
    if (!row.exact->passed && row.exact->not_made.empty())
      inexact = describe(*row.exact) + save_exact_test(input, row);  // before C is written again
    poll_interrupt();
  }
  const auto launch = [&] { plan->launch(operands.b, operands.c, device.stream()); };
  for (int pass = 0; pass < 2; ++pass) {
    const bool first = pass == 0;  // timed, from an idle device: a plan may prepare in it
    if (!first) hold_stream(device);
    poison(operands.c, info, device);
    if (first) device.synchronize();
    const double start = steady_seconds();
    launch();
    device.synchronize();
    if (first) row.metrics["first_launch_us"] = (steady_seconds() - start) * 1e6;
    take_c(input);
    if (!verify(input, row)) break;
    poll_interrupt();
  }
  fill_from_plan(*plan, input.problem, row);
  if (row.status == Status::wrong) return;
  if (!inexact.empty()) {
    row.status = Status::wrong;
    row.reason = inexact;
    return;
  }
  if (const std::string why = why_unproved(input, row); !why.empty()) {
    row.status = Status::failed;
    row.reason = "cannot be verified: " + why;
    return;
  }

  if (input.one_launch) {
    const bool on_gpu = device.info().kind == DeviceKind::cuda;
    if (on_gpu)
      profiler_start(kProfileRange, fmt::format("{} n={} {} {} {}", row.matrix.name, row.n,
                                                row.kernel, row.precision, row.reorder));
    launch();
    if (on_gpu) profiler_stop();
    take_c(input);
    if (verify(input, row)) row.status = Status::ok;
    return;
  }
  if (input.repeat_check) {
    const Repeats repeats = repeat_launches(
        device, info, operands.c, launch_and_take(input, launch),
        [&](bool known) { return verify(input, row, "a repeated launch: ", known); });
    row.bit_identical = repeats.same_bits;
    if (!repeats.right) return;
  }
  if (!take_times(input, limits, *plan, row)) return;
  if (!input.calls_curve.empty()) {
    row.calls_us = measure_calls_curve(*input.choice, input.problem, Spec::parse(row.reorder),
                                       operands, input.calls_curve, device);
    take_c(input);
    if (!verify(input, row, "after several calls: ")) {
      row.hot = row.cold = std::nullopt;
      return;
    }
  }
  row.gflops = 2.0 * static_cast<double>(input.problem.nnz()) *
               static_cast<double>(input.problem.n) / row.hot->median_us / 1e3;
  row.compulsory_bytes = input.compulsory_bytes;
  row.bound_us = input.bound_us;
  row.of_bound = input.bound_us / row.hot->median_us;
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
    const double start = steady_seconds();
    const Support support = check_support(*input.choice->kernel, input.problem, device);
    const double support_ms = (steady_seconds() - start) * 1e3;
    if (support.ok && support_ms > kLeastStallMs) row.stages_ms["support"] = support_ms;
    const auto fits = [&] { return support.device_bytes <= input.device->free_bytes(); };
    const bool measurable = support.ok && input.operands != nullptr;
    if (measurable && !fits() && input.free_memory) input.free_memory();
    const auto skip = [&row](const std::string& reason) {
      row.status = Status::skipped;
      row.reason = reason;
    };
    if (!support.ok) {
      skip(support.reason);
    } else if (input.operands == nullptr) {
      fail(input.operands_error);
    } else if (!fits()) {
      skip(out_of_memory(*input.device, support.device_bytes));
    } else {
      measure(input, limits, row);
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

void add_stages(const StageTimer& stages, ResultRow& row) {
  for (const auto& [stage, ms] : stages.stages_ms()) row.stages_ms[stage] += ms;
  for (const std::string& stage : stages.kept())
    if (!contains(row.kept_stages, stage)) row.kept_stages.push_back(stage);
}

std::string error_warning(const ResultRow& row) {
  if (row.status != Status::ok || !row.verify || !(row.verify->error_over_typical > 1)) return {};
  return fmt::format(
      "{} n={} {} {}: the error is {:.2g} x what random rounding leaves and {:.2g} x the bound: "
      "sums that round to one side, or a fault that the bound hides",
      row.matrix.name, row.n, row.kernel, row.precision, row.verify->error_over_typical,
      row.verify->error_over_bound);
}

double compulsory_bytes(const CsrMatrix& a, std::int64_t n, Precision precision,
                        ElementType c_type) {
  std::vector<bool> referenced(a.cols, false);
  for (const std::int32_t col : a.col_idx) referenced[col] = true;
  const auto columns = std::count(referenced.begin(), referenced.end(), true);
  const auto input_bytes = static_cast<double>(bytes_of(storage_type(precision)));
  const double pointer_bytes = a.nnz() < (std::int64_t{1} << 31) ? 4 : 8;
  return static_cast<double>(a.nnz()) * (4 + input_bytes) +
         static_cast<double>(a.rows + 1) * pointer_bytes +
         static_cast<double>(columns) * static_cast<double>(n) * input_bytes +
         static_cast<double>(a.rows) * static_cast<double>(n) *
             static_cast<double>(bytes_of(c_type));
}

}  // namespace spmmbench
