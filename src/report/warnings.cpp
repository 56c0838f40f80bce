#include "report/warnings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/numbered.hpp"
#include "timing/quantiles.hpp"
#include "timing/throttling.hpp"

namespace spmmbench {
namespace {

constexpr double kSlowStart = 2;  // first sample / third quartile
constexpr double kFarCold = 5;    // cold / hot, without the floor of two events
// The first launch of a plan beyond twice a cold one. CUDA loads the code of a kernel in its first
// launch, in 0.3 to 1 ms, and other work on the host was seen to add up to 20 ms to what takes 1 to
// 2 ms (docs/decisions/preparation.md).
constexpr double kHiddenPreparationUs = 20'000;
// Preemptions of a thread in a second. A machine without other work has a few; a busy thread of
// another process takes a processor for some milliseconds at a time.
constexpr double kManyPreemptions = 20;
constexpr int kFewestToTell = 10;  // samples, half of which repeat others

// The smallest step between samples over their median, where most samples repeat others: the timer
// cannot tell times apart that are closer. 0 where that does not show.
double timer_step(const Timing& timing) {
  std::vector<double> samples = timing.samples_us;
  std::sort(samples.begin(), samples.end());
  double step = std::numeric_limits<double>::infinity();
  int distinct = samples.empty() ? 0 : 1;
  for (std::size_t i = 1; i < samples.size(); ++i) {
    if (samples[i] == samples[i - 1]) continue;
    step = std::min(step, samples[i] - samples[i - 1]);
    ++distinct;
  }
  const bool shows = timing.n() >= kFewestToTell && distinct > 1 && 2 * distinct <= timing.n();
  return shows ? step / timing.median_us : 0;
}

}  // namespace

bool Warnings::Kind::note(double value, const ResultRow& row) {
  ++rows;
  if (rows > 1 && value <= worst) return false;
  worst = value;
  where = fmt::format("{} on {}, N = {}", row.kernel, row.matrix.name, row.n);
  return true;
}

void Warnings::add(const ResultRow& row) {
  if (row.status != Status::ok || !row.hot || !row.cold) return;
  ++rows_;
  const Timing& hot = *row.hot;
  const auto preemptions = row.metrics.find("preemptions_per_s");
  const bool preempted = preemptions != row.metrics.end() && preemptions->second > kManyPreemptions;
  if (preempted) preempted_.note(preemptions->second, row);
  if (row.exact && !row.exact->not_made.empty() &&
      untested_.note(static_cast<double>(row.matrix.max_row), row))
    why_untested_ = row.exact->not_made;
  if (const double noise = relative_noise(hot.samples_us); noise > noise_limit_)
    noisy_.note(noise * 100, row);
  if (const double step = std::max(timer_step(hot), timer_step(*row.cold)); step > noise_limit_)
    coarse_.note(step * 100, row);
  if (const auto it = row.metrics.find("a_not_finite"); it != row.metrics.end())
    not_finite_.note(it->second, row);
  if (const auto it = row.metrics.find("throttle_reasons"); it != row.metrics.end())
    throttled_.note(it->second, row);
  if (const double start = hot.samples_us.front() / hot.q3_us; start > kSlowStart)
    slow_start_.note(start, row);
  const auto first = row.metrics.find("first_launch_us");
  if (first != row.metrics.end() && !preempted &&
      first->second > 2 * row.cold->median_us + kHiddenPreparationUs)
    slow_first_.note(first->second / 1e3, row);
  if (const auto it = row.metrics.find("first_prepare_ms"); it != row.metrics.end())
    slow_prepare_.note(it->second, row);
  if (const auto it = row.metrics.find("elsewhere_ms");
      it != row.metrics.end() && !row.metrics.contains("gpu_processes"))
    elsewhere_.note(it->second, row);
  if (const auto it = row.metrics.find("processors_used"); it != row.metrics.end())
    processors_.note(it->second, row);
  if (const auto it = row.metrics.find("thread_ms"); it != row.metrics.end())
    threads_.note(it->second, row);
  if (const auto it = row.metrics.find("launch_stall_ms"); it != row.metrics.end() && !preempted)
    (row.metrics.contains("gpu_processes") ? shared_ : stalls_).note(it->second, row);
  // Where other work took the processors, the cache need not be the reason.
  if (const double cold = (row.cold->median_us - timer_floor_us_) / hot.median_us;
      cold > kFarCold && !preempted)
    cold_.note(cold, row);
}

void Warnings::add_clocks(const ClockState& before, const ClockState& after) {
  if (!before.sm_mhz || !after.sm_mhz) return;
  const auto [least, most] = std::minmax(*before.sm_mhz, *after.sm_mhz);
  if (most > kSameClock * least)
    drift_ = fmt::format("from {} to {} MHz", *before.sm_mhz, *after.sm_mhz);
}

std::vector<std::string> Warnings::lines() const {
  std::vector<std::string> lines;
  add_doubts(lines);
  add_uncounted_work(lines);
  add_far_samples(lines);
  return lines;
}

std::string Warnings::of_all(const Kind& kind) const {
  return fmt::format("{} of {}", kind.rows, numbered(rows_, "row"));
}

void Warnings::add_doubts(std::vector<std::string>& lines) const {
  if (untested_.rows > 0)
    lines.push_back(fmt::format(
        "{} had no exact test (the longest row of A: {:.0f} nonzeros, {}: {}), so only "
        "the error bound says that C is right, and in long rows it hides a missing nonzero. "
        "Where memory was short, run again with --isolate or on a device with more",
        of_all(untested_), untested_.worst, untested_.where, why_untested_));
  if (not_finite_.rows > 0)
    lines.push_back(fmt::format(
        "A of {} has values that are NaN or infinite (most {:.0f}: {}), and so are the elements of "
        "C that they meet. fp64 values beyond the range of fp32 become infinite; --precision fp64 "
        "keeps them",
        of_all(not_finite_), not_finite_.worst, not_finite_.where));
  if (preempted_.rows > 0)
    lines.push_back(
        fmt::format("other work took the processors in {} (worst {:.0f} times a second and thread: "
                    "{}), so times may be wrong by far. Let nothing else run, give the process "
                    "processors of its own (taskset, OMP_NUM_THREADS), or let its threads sleep "
                    "while they wait (OMP_WAIT_POLICY=passive)",
                    of_all(preempted_), preempted_.worst, preempted_.where));
  if (noisy_.rows > 0) {
    // Samples that are too few tell nothing, which counts as infinite noise.
    const std::string worst = std::isinf(noisy_.worst)
                                  ? "too few samples to tell"
                                  : fmt::format("worst {:.1f} %", noisy_.worst);
    lines.push_back(fmt::format(
        "{} {} noisier than {:g} % ({}: {}). Let nothing else "
        "run, or raise "
        "--max-seconds and --max-samples",
        of_all(noisy_), noisy_.rows == 1 ? "is" : "are", noise_limit_ * 100, worst, noisy_.where));
  }
  if (throttled_.rows > 0)
    lines.push_back(fmt::format(
        "the GPU had lowered its clocks in {}, whose samples were repeated {} times in "
        "vain (power or temperature; throttle_reasons in the metrics, last: {}). Compare such rows "
        "with runs in the same state only, or cool the device and lock its clocks with nvidia-smi "
        "-lgc",
        of_all(throttled_), kThrottledRepeats, throttled_.where));
  if (!drift_.empty())
    lines.push_back(fmt::format(
        "the SM clock went {} in this run, so that rows from its beginning and its end do not "
        "compare. --interleave measures kernels in turns; nvidia-smi -lgc locks the clock",
        drift_));
  if (coarse_.rows > 0)
    lines.push_back(
        fmt::format("the timer cannot tell times apart that differ by less than {:.1f} % in {} "
                    "(worst: {}). Take a larger N or matrix",
                    coarse_.worst, of_all(coarse_), coarse_.where));
}

void Warnings::add_uncounted_work(std::vector<std::string>& lines) const {
  if (slow_first_.rows > 0)
    lines.push_back(fmt::format(
        "in {} the first launch of a plan took {:g} ms more than two cold ones (worst "
        "{:.0f} ms: {}). It seems to prepare, which no stage counts: a kernel should do that in "
        "prepare or bind",
        of_all(slow_first_), kHiddenPreparationUs / 1e3, slow_first_.worst, slow_first_.where));
  if (elsewhere_.rows > 0)
    lines.push_back(fmt::format(
        "in {} a kernel worked for more than {:g} ms where no stage counts it: when it "
        "reported on a plan or freed one, or in the exact test (elsewhere_ms in the metrics, worst "
        "{:.0f} ms: {})",
        of_all(elsewhere_), kHiddenPreparationUs / 1e3, elsewhere_.worst, elsewhere_.where));
  if (slow_prepare_.rows > 0)
    lines.push_back(fmt::format(
        "in {} the first of several preparations took {:g} ms more than the one that "
        "counts (worst {:.0f} ms: {}). It seems to keep what it found, or other work on the host "
        "held it up",
        of_all(slow_prepare_), kHiddenPreparationUs / 1e3, slow_prepare_.worst,
        slow_prepare_.where));
  if (threads_.rows > 0)
    lines.push_back(
        fmt::format("in {} threads that the kernel has begun worked while it was timed "
                    "on a GPU (worst {:.0f} ms: {}): they may keep B in the cache, or prepare what "
                    "launches use",
                    of_all(threads_), threads_.worst, threads_.where));
  if (processors_.rows > 0)
    lines.push_back(fmt::format(
        "{} used more processors than OpenMP has threads (worst {:.1f}: {}), so times do "
        "not compare with those of other rows. taskset gives all rows the same processors",
        of_all(processors_), processors_.worst, processors_.where));
  if (stalls_.rows > 0)
    lines.push_back(fmt::format(
        "in {} a launch after the first took {:g} ms more than the others (worst {:.0f} "
        "ms: {}). It seems to prepare, or other work on the host held it up",
        of_all(stalls_), kHiddenPreparationUs / 1e3, stalls_.worst, stalls_.where));
  if (shared_.rows > 0)
    lines.push_back(
        fmt::format("other processes used the GPU in {}, and a launch took up to {:.0f} "
                    "ms more than "
                    "the others ({}). Times may be wrong by far: let nothing else run there",
                    of_all(shared_), shared_.worst, shared_.where));
}

void Warnings::add_far_samples(std::vector<std::string>& lines) const {
  if (slow_start_.rows > 0)
    lines.push_back(
        fmt::format("the first sample of {} took {:g} times the others or more (worst {:.1f}: {}). "
                    "The median hardly notices; --min-samples 30 makes sure",
                    of_all(slow_start_), kSlowStart, slow_start_.worst, slow_start_.where));
  if (cold_.rows > 0)
    lines.push_back(fmt::format(
        "{} took {:g} times as long with an empty cache or more (worst {:.1f}: {}). If "
        "your calls do not find their operands in the cache, rank by cold times: --sort cold, "
        "compare --cold",
        of_all(cold_), kFarCold, cold_.worst, cold_.where));
}

}  // namespace spmmbench
