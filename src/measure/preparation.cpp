#include "measure/preparation.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "core/contains.hpp"
#include "core/steady_seconds.hpp"
#include "process/processor_seconds.hpp"
#include "spmmbench/error.hpp"

namespace spmmbench {
namespace {

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

// The plan of `made`, for an A that is prepared.
void bind(const CaseInput& input, Prepared& a, Preparation& made) {
  made.stages = made.a_stages;
  made.plan = bind_members(a, input.problem.shape(), input.members, made.stages);
  made.plan->settle(made.stages);  // what is timed is what launches come to
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

Preparation prepare(const CaseInput& input, Unfinished look) {
  Preparation made;
  const double start = processor_seconds();
  made.a = input.choice->kernel->prepare(input.problem.operand(), input.problem.options,
                                         *input.device, made.a_stages);
  bind(input, *made.a, made);
  made.processor_ms = (processor_seconds() - start) * 1e3;
  add_unfinished_work(*input.device, look, made.stages);
  return made;
}

// A plan for the A that an earlier case of another N has prepared.
Preparation prepare_shared(const CaseInput& input) {
  Preparation made;
  made.a_stages = input.prepared->stages;
  bind(input, *input.prepared->kernel_a, made);
  add_unfinished_work(*input.device, Unfinished::everywhere, made.stages);
  return made;
}

// Whether the preparation may have been held up by other work on the host. If an earlier case made
// A, it has repeated that part, so only the time of the plan counts.
bool may_be_held_up(const Preparation& made) {
  return made.ms() < kShortPreparationMs && (made.a || made.plan_ms() >= kLeastStallMs);
}

// The first preparation on a GPU loads the kernel's code, which took up to 63 ms.
bool may_have_loaded_code(const CaseInput& input, const Preparation& made) {
  constexpr double kMostMs = 500;
  return input.device->info().kind == DeviceKind::cuda && made.a && made.ms() < kMostMs;
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
// `first_ms`: what the first took.
Preparation fastest_preparation(const CaseInput& input, double& first_ms) {
  Preparation fastest =
      input.prepared->kernel_a ? prepare_shared(input) : prepare(input, Unfinished::everywhere);
  first_ms = fastest.ms();
  const PlanReport report = fastest.plan->report();
  const bool repeats = may_be_held_up(fastest) || may_have_loaded_code(input, fastest);
  if (!repeats || input.one_launch) return fastest;
  for (int i = 1; i < kShortPreparations; ++i) {
    if (i > 1 && !may_be_held_up(fastest)) break;
    if (report.device_bytes > input.device->free_bytes()) break;
    try {
      Preparation next = prepare(input, Unfinished::on_streams);
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

std::unique_ptr<Plan> make_plan(const CaseInput& input, ResultRow& row) {
  const double start = steady_seconds();
  double first_ms = 0;
  Preparation made = fastest_preparation(input, first_ms);
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
  return std::move(made.plan);
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
  for (const auto& [stage, ms] : stages.stages_ms()) row.stages_ms[stage] += ms;
  for (const std::string& stage : stages.kept())
    if (!contains(row.kept_stages, stage)) row.kept_stages.push_back(stage);
}

}  // namespace spmmbench
