#include "measure/preparation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "core/contains.hpp"
#include "core/steady_seconds.hpp"
#include "gpu/nvml.hpp"
#include "measure/alone_on_gpu.hpp"
#include "process/processor_seconds.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

// A and a plan, with what making them took.
struct Preparation {
  std::shared_ptr<Prepared> a;  // null where an earlier case has prepared A
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

// Threads of OpenMP that wait for work look as if they had some. Read before any plug-in is loaded.
const bool kThreadsSpin = [] {
  const char* const policy = std::getenv("OMP_WAIT_POLICY");
  const bool active = policy != nullptr && (*policy == 'a' || *policy == 'A');
  return active || std::getenv("GOMP_SPINCOUNT") != nullptr;
}();

// Whether another thread of this process works or waits for a processor.
bool another_thread_is_runnable() {
  const std::string own = fmt::format("{}", gettid());
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == own) continue;
    std::ifstream file(task.path() / "stat");
    std::string line;
    std::getline(file, line);  // empty of a thread that has ended
    const std::size_t name_end = line.rfind(") ");
    if (name_end != std::string::npos && line.compare(name_end + 2, 1, "R") == 0) return true;
  }
  return false;
}

bool other_threads_work() {
  constexpr double kLookSeconds = 1e-3;
  const double before = processor_seconds();
  std::this_thread::sleep_for(std::chrono::duration<double>(kLookSeconds));
  return processor_seconds() - before > kLookSeconds / 2 || another_thread_is_runnable();
}

// Calls a kernel, and waits for its stream. What this took beyond the stages that it told of is a
// stage too.
void call(const CaseInput& input, StageTimer& stages, const std::function<void()>& kernel) {
  const double told_ms = stages.total_ms();
  const OwnSeconds since(Threads::caller);
  kernel();
  input.device->synchronize();
  const double ms = since.passed() * 1e3 - (stages.total_ms() - told_ms);
  if (ms > kLeastStallMs) stages.add("unexplained", ms);
}

// The plan of `made`, for an A that is prepared.
void bind(const CaseInput& input, Prepared& a, Preparation& made) {
  const bool looks_later = input.b_is_drawn && input.choice->kernel->info().inspects_b;
  made.stages = made.a_stages;
  call(input, made.stages, [&] {
    made.plan = bind_members(a, input.problem.shape(), input.members, made.stages);
    made.plan->settle(made.stages);  // what is timed is what launches come to
    if (!looks_later) made.plan->inspect_b(input.operands->b, made.stages);
  });
  if (!looks_later) return;
  StageTimer not_counted;
  const double start = steady_seconds();
  made.plan->inspect_b(input.operands->b, not_counted);
  input.device->synchronize();
  made.inspection_us = (steady_seconds() - start) * 1e6;
}

// Adds the time until the end of the block to a sum, however it ends.
class AddsTime {
 public:
  explicit AddsTime(double& seconds) : seconds_(seconds) {}
  AddsTime(const AddsTime&) = delete;
  AddsTime& operator=(const AddsTime&) = delete;
  ~AddsTime() { seconds_ += since_.passed(); }

 private:
  double& seconds_;
  OwnSeconds since_{Threads::caller};
};

// The kernel's A. What it was made from, if it is its own, lives as long.
std::shared_ptr<Prepared> prepare_a(const CaseInput& input, std::shared_ptr<AloneOnGpu> own,
                                    StageTimer& stages) {
  SparseOperand a = input.problem.operand();
  if (own) own->give_to(a);
  std::unique_ptr<Prepared> made =
      input.choice->kernel->prepare(a, input.problem.options, *input.device, stages);
  if (!own) return made;
  return {made.release(), [own = std::move(own)](Prepared* prepared) { delete prepared; }};
}

Preparation prepare(const CaseInput& input, Unfinished look, double& seconds) {
  const AddsTime timed(seconds);
  Preparation made;
  const double start = processor_seconds();
  std::shared_ptr<AloneOnGpu> own;
  if (input.a_lies_on() == DeviceKind::cuda)
    own = std::make_shared<AloneOnGpu>(input.problem.operand(), input.reorder, *input.device);
  call(input, made.a_stages, [&] { made.a = prepare_a(input, std::move(own), made.a_stages); });
  bind(input, *made.a, made);
  made.processor_ms = (processor_seconds() - start) * 1e3;
  add_unfinished_work(*input.device, look, made.stages);
  return made;
}

// A plan for the A that an earlier case of another N has prepared.
Preparation prepare_shared(const CaseInput& input, double& seconds) {
  const AddsTime timed(seconds);
  Preparation made;
  made.a_stages = input.prepared->stages;
  bind(input, *input.prepared->kernel_a, made);
  add_unfinished_work(*input.device, Unfinished::everywhere, made.stages);
  return made;
}

// Whether a repetition may take less. If an earlier case made A, it has repeated that part, so only
// the time of the plan counts.
bool may_take_less(const Preparation& made) { return made.a || made.plan_ms() >= kLeastStallMs; }

// Whether the preparation may have been held up by other work on the host.
bool may_be_held_up(const Preparation& made) {
  return made.ms() < kShortPreparationMs && may_take_less(made);
}

// The first preparation on a GPU loads the kernel's code, which took up to 63 ms. Plans of `auto`
// load that of the kernels they try.
bool may_have_loaded_code(const CaseInput& input, const Preparation& made) {
  constexpr double kMostMs = 500;
  return input.device->info().kind == DeviceKind::cuda && may_take_less(made) &&
         made.ms() < kMostMs;
}

// Whether the cache folder had what trials of an earlier preparation found.
bool is_remembered(const Preparation& made) {
  const PlanReport report = made.plan->report();
  return report.pick && report.pick->remembered;
}

// A short preparation is made several times, and the fastest is kept: on a host that others use too
// a thread that has to wait adds milliseconds. On the CPU one that does much less work than another
// does not count, except those of vendors' libraries, which begin with what they do once in a
// process, as kernels on a GPU do whose code is loaded.
// `first_ms`: what the first took. `seconds`: what all took.
Preparation fastest_preparation(const CaseInput& input, double& first_ms, double& seconds) {
  Preparation fastest = input.prepared->kernel_a ? prepare_shared(input, seconds)
                                                 : prepare(input, Unfinished::everywhere, seconds);
  first_ms = fastest.ms();
  const PlanReport report = fastest.plan->report();
  const bool repeats = may_be_held_up(fastest) || may_have_loaded_code(input, fastest);
  if (!repeats || input.one_launch) return fastest;
  for (int i = 1; i < kShortPreparations; ++i) {
    if (i > 1 && !may_be_held_up(fastest)) break;
    if (report.device_bytes > input.device->free_bytes()) break;
    try {
      Preparation next = prepare(input, Unfinished::on_streams, seconds);
      if (is_remembered(next) && !is_remembered(fastest)) break;
      // What an earlier look found may be kept: the longest counts.
      next.inspection_us = fastest.inspection_us =
          std::max(next.inspection_us, fastest.inspection_us);
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

}  // namespace

MadePlan make_plan(const CaseInput& input, ResultRow& row) {
  if (input.prepared->has_other_values) *input.prepared = {};
  const double start = steady_seconds();
  const OwnSeconds since(Threads::caller);
  double first_ms = 0, seconds = 0;
  Preparation made = fastest_preparation(input, first_ms, seconds);
  const double other_ms = (since.passed() - seconds) * 1e3;
  if (made.a) {
    input.prepared->kernel_a = std::move(made.a);
    input.prepared->stages = std::move(made.a_stages);
  }
  add_stages(made.stages, row);
  row.metrics["prepare_wall_ms"] = (steady_seconds() - start) * 1e3;
  if (input.device->info().kind == DeviceKind::cuda && !input.choice->kernel->info().baseline &&
      first_ms > made.ms() + kHiddenPreparationMs)
    row.metrics["first_prepare_ms"] = first_ms;
  if (made.inspection_us > 0) row.metrics["inspect_b_us"] = made.inspection_us;
  return {std::move(made.plan), made.stages.total_ms(), other_ms};
}

void add_hidden_work(const MadePlan& made, double exact_ms, const DeviceInfo& device,
                     ResultRow& row) {
  constexpr double kUneven = 2;  // equal work takes up to this many times as long
  const auto us = [&](const char* metric) {
    const auto found = row.metrics.find(metric);
    return found == row.metrics.end() ? 0 : found->second;
  };
  const double expected_ms =
      made.prepare_ms + (us("inspect_b_us") + 2 * us("first_launch_us")) / 1e3;
  const double in_test_ms =
      exact_ms > kUneven * expected_ms + kHiddenPreparationMs ? exact_ms - expected_ms : 0;
  const double other_ms = made.other_ms > kHiddenPreparationMs ? made.other_ms : 0;
  if (device.kind == DeviceKind::host) {
    if (other_ms > 0) row.stages_ms["other_calls"] += other_ms;
    if (in_test_ms > 0) row.stages_ms["exact_test"] += in_test_ms;
  } else if (other_ms + in_test_ms > 0) {
    row.metrics["elsewhere_ms"] = other_ms + in_test_ms;
    if (const int others = nvml_other_processes(device.uuid); others > 0)
      row.metrics["gpu_processes"] = others;
  }
}

void add_unfinished_work(Device& device, Unfinished look, StageTimer& stages) {
  constexpr double kMostSeconds = 1;
  const bool on_host = device.info().kind == DeviceKind::host;
  const double start = steady_seconds();
  device.wait_idle();
  while (on_host && look == Unfinished::everywhere && !kThreadsSpin && other_threads_work() &&
         steady_seconds() - start < kMostSeconds) {
  }
  // Threads of OpenMP that wait for work go on for some 20 ms.
  const double least_ms = on_host ? kShortPreparationMs : kLeastStallMs;
  const double ms = (steady_seconds() - start) * 1e3;
  if (ms > least_ms) stages.add("unfinished", ms);
}

void add_stages(const StageTimer& stages, ResultRow& row) {
  constexpr double kRoundingMs = 1e-6;
  for (const auto& [stage, ms] : stages.stages_ms()) {
    if (!(ms >= -kRoundingMs)) throw Error(fmt::format("stage '{}': {:g} ms", stage, ms));
    // Loading is the program's own stage, and no part of a preparation.
    row.stages_ms[stage == "load" ? "build" : stage] += ms;
  }
  for (const std::string& stage : stages.kept())
    if (!contains(row.kept_stages, stage)) row.kept_stages.push_back(stage);
}

}  // namespace spmmbench
