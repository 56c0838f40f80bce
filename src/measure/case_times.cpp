#include "measure/case_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpu/nvml.hpp"
#include "gpu/rates.hpp"
#include "measure/case_checks.hpp"
#include "measure/preparation.hpp"
#include "measure/repeat.hpp"
#include "measure/spot_checks.hpp"
#include "measure/watched_batches.hpp"
#include "process/interrupt.hpp"
#include "process/preemptions.hpp"
#include "process/processor_seconds.hpp"
#include "process/waited_seconds.hpp"
#include "timing/quantiles.hpp"
#include "timing/sampler.hpp"
#include "timing/throttling.hpp"

namespace spmmbench {
namespace {

// The fastest rate at which this device was seen to write, in bytes per second: of a buffer that
// fits in the cache next to its cores. Infinity where there is no cache, or no memory for one.
double fastest_writes(Device& device) {
  constexpr std::size_t kMostBytes = std::size_t{16} << 10;  // of the cache of a processor's core
  constexpr int kTries = 3, kFills = 16;
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

// More multiplications and additions than the device does in a second.
double most_flops(Device& device) {
  constexpr double kMargin =
      4;  // a choice: vendors' products reach 1.6, and 8 bits take half of 16
  if (device.info().kind == DeviceKind::cuda) return kMargin * measure_tensor_cores(device);
  constexpr double kPerCycle = 1024;  // of a core's matrix unit: Intel's AMX with bf16
  constexpr double kHz = 6.2e9;       // the highest clock that a processor is sold with
  return kPerCycle * kHz * std::max(device.info().sm_count, 1);
}

struct Rates {
  double bytes_per_second, flops;
};

Rates measure_rates(Device& device) { return {fastest_writes(device), most_flops(device)}; }

// Of a GPU they are measured once in a process, since that takes as long as a few samples.
Rates fastest_rates(Device& device) {
  if (device.info().kind == DeviceKind::host) return measure_rates(device);
  static std::mutex guard;
  static std::map<int, Rates> known;  // by index
  const std::scoped_lock lock(guard);
  const auto found = known.find(device.info().index);
  if (found != known.end()) return found->second;
  return known.emplace(device.info().index, measure_rates(device)).first->second;
}

// Why no launch takes so little time; empty where one may.
std::string why_impossible(const LeastTimes& least, double us) {
  if (us < least.writing_us)
    return fmt::format("takes {:.3g} us, and writing C alone takes {:.3g} us", us,
                       least.writing_us);
  if (us < least.products_us)
    return fmt::format("takes {:.3g} us, and its products alone take {:.3g} us", us,
                       least.products_us);
  return {};
}

struct Times {
  Timing hot, cold;
};

// One of each block of samples or other things, that chance picks.
class OneOfEachBlock {
 public:
  bool next(SpotChecks& checks, int block) {
    if (left_ == 0) picked_ = checks.length_up_to(left_ = block);
    ++seen_;
    return left_-- == picked_;
  }
  int seen() const { return seen_; }

 private:
  int seen_ = 0, left_ = 0, picked_ = 0;
};

// How a batch is launched once more.
enum class Again { no, first_launches, watched };
struct CannotBeWatched {};

// What launches took that their own time does not explain, nor other work that had the processors.
// A kernel may prepare in one of them.
class Stalls {
 public:
  explicit Stalls(DeviceKind device) : threads_(launching_threads(device)), since_(threads_) {}

  void begin() { since_ = OwnSeconds(threads_); }
  void end(int launches) { took_.push_back({since_.passed() * 1e6, launches}); }
  // Samples, while which threads waited so long in all. A GPU's are timed by events.
  void add(const Timing& timing, double waited) {
    const double waited_us = threads_ == Threads::all ? waited * 1e6 : 0;
    for (const double us : timing.samples_us)
      took_.push_back({us * timing.launches_per_sample - waited_us, timing.launches_per_sample});
  }

  // The longest in milliseconds, where a launch takes `us`.
  double longest(double us) const {
    constexpr double kHostUs = 50;  // to enqueue a launch and to wait for it
    double ms = 0;
    for (const Took& took : took_)
      ms = std::max(ms, (took.us - took.launches * (2 * us + kHostUs)) / 1e3);
    return ms;
  }

 private:
  struct Took {
    double us;
    int launches;
  };
  Threads threads_;
  OwnSeconds since_;
  std::vector<Took> took_;
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
                                        const LaunchAt& launch_product, SpotChecks& checks,
                                        ResultRow& row) {
  // The first launches of a batch, launched once more, show what a launch in the middle of others
  // does, but for one that leaves its work out where others follow. A batch that is watched shows
  // all of them. One of each block of samples is followed by one or the other, and at least this
  // many are in all.
  constexpr int kFewestChecks = 8, kFewestWhereWatched = 3;
  constexpr int kSamples = 4, kLaterSamples = 8, kEarly = 32;  // of a block; samples before these
  constexpr int kSamplesWhereWatched = 12;
  // A launch that does not wait for what is before it shows in each of these.
  constexpr int kLateBatches = 2, kLateLaunches = 2;
  // Enough for launches that overlap those before them.
  constexpr int kMostLateLaunches = 16;
  // Of the threads of OpenMP, with a margin for the program's own.
  constexpr double kMostProcessors = 1.25;
  constexpr double kLateUs = 20;  // several times what it takes to start a kernel
  Device& device = *input.device;
  const KernelInfo& info = input.choice->kernel->info();
  SamplerOptions sampler{.by_host_clock = info.ignores_stream};
  sampler.max_batch = std::min(sampler.max_batch, checks.most_launches());
  int launches_so_far = 0;
  const LaunchAt launch = [&](int at) {
    ++launches_so_far;
    launch_product(at);
  };
  Stalls stalls(device.info().kind);
  // The checks after sampling must see what the timed launches wrote. So C is poisoned after any
  // recording, just before the first timed launch, and before every cold one: the flush that
  // follows leaves as little of C in the cache as the launch before it did.
  const auto poison_c = [&] {
    take_c(input);
    start_c(input);
  };
  // Launches that read C begin with the same one in every batch, and go on with what they wrote.
  const bool reads_c = input.update.beta != 0;
  const auto restart = [&] {
    if (reads_c) start_c(input);
  };
  const auto look = [&](const char* what = "a timed launch") {
    take_c(input);
    checks.after(what);
  };
  const char* const kLate = "a launch after a late change of B";
  // A callable's result lies where the last launch that was recorded put it. The first launches of
  // a CUDA graph put theirs elsewhere, so that such a graph is launched as a whole.
  const bool on_gpu = device.info().kind == DeviceKind::cuda;
  const bool is_whole = input.take_c && on_gpu;
  const auto read_soon = [&] {
    if (!input.take_c) checks.read_soon();
  };
  // What a sample wrote is then judged after the next one, and that has less to wait for.
  const bool begins_early = on_gpu && !input.take_c && input.update.plain();
  // How many of the first launches follow, and what they need. On a GPU it is chosen and made while
  // others run. 0: not yet.
  int cut_short = 0;
  const auto choose_first = [&](const Batch& batch) {
    cut_short = checks.length_up_to(batch.launches);
    batch.make_ready(cut_short);
    checks.make_ready(cut_short);
  };
  const auto launch_first = [&](const Batch& batch, const std::function<void()>& meanwhile) {
    if (is_whole) return;
    if (cut_short == 0) choose_first(batch);
    restart();
    checks.before(cut_short);
    batch.first(std::exchange(cut_short, 0), [&] {
      read_soon();
      meanwhile();
    });
    look();
  };
  // B changes between the launches, and so late that one which does not wait for those before it
  // has the values that were there.
  const auto write_late = [&](double us) {
    checks.write_changes(us);
    if (info.ignores_stream) device.synchronize();
  };
  const auto late_length = [&](int most) {
    return checks.length_up_to(std::min(most, kMostLateLaunches));
  };
  // Each calls `next` while it runs.
  const auto launch_late_batch = [&](int most, int count, const std::function<void()>& next) {
    // Where B is constant, C is overwritten there: a pause would tell a kernel so.
    const double us = info.inspects_b ? 0 : std::max(kLateUs, sampler.sample_us / most);
    restart();
    checks.before(count, false);
    stalls.begin();
    const LaunchAt launch_late = [&](int at) {
      if (at == count - 1) write_late(us);
      launch(at);
    };
    launch_batch(device, launch_late, count, sampler, [&] {
      read_soon();
      next();
    });
    look(kLate);
    stalls.end(2 * count);  // recorded and replayed
  };
  const auto launch_alone = [&](bool last) {  // not as a graph, nor behind an event
    poison_c();
    checks.before(1, false);
    stalls.begin();
    write_late(kLateUs);
    launch(0);
    if (on_gpu) read_soon();
    if (on_gpu && !last) checks.make_ready(1, false);
    look(kLate);
    stalls.end(1);
  };
  int late = 1;  // launches of the late batch that comes next
  bool poisoned = false, right = true;
  WatchedBatches watched(checks, input.operands->c.type, [&] { return make_cuda_watcher(device); });
  bool can_watch = on_gpu && !is_whole && !sampler.by_host_clock && checks.can_be_watched();
  sampler.apart = on_gpu && !is_whole && !sampler.by_host_clock && !can_watch && !reads_c;
  int checked = 0;
  OneOfEachBlock hot_blocks, kinds;
  const auto choose_again = [&](const Batch& batch) {
    const int block = can_watch                     ? kSamplesWhereWatched
                      : hot_blocks.seen() >= kEarly ? kLaterSamples
                                                    : kSamples;
    if (batch.launches == 1 || !hot_blocks.next(checks, block)) return Again::no;
    return can_watch && kinds.next(checks, 2) ? Again::watched : Again::first_launches;
  };
  const auto launch_again = [&](const Batch& batch, Again how, const Batch::Meanwhile& meanwhile) {
    if (how == Again::no) return;
    ++checked;
    if (how == Again::first_launches) launch_first(batch, meanwhile);
    else if (!watched.launch(batch, meanwhile)) throw CannotBeWatched();
  };
  std::optional<Again> again;  // after this sample, once it is known
  const AroundSample around_hot = {
      // A reset of lines that persist changes hot times where they stay in the cache
      // (docs/decisions/locality.md): a flush evicts them, and the batch brings them in anew.
      .begin =
          [&] {
            cut_short = 0;  // of another batch
            again.reset();
            if (!on_gpu) return;
            device.unreserve_cache();
            device.flush_cache();
          },
      .warming = [&](const Batch& batch) { checks.make_ready(batch.launches); },
      .before =
          [&](int launches) {
            poll_interrupt();
            if (poisoned) {
              restart();
            } else {
              stalls.end(launches_so_far + launches);
              poison_c();
            }
            poisoned = true;
            checks.before(launches);
          },
      .meanwhile =
          [&](const Batch& batch) {
            read_soon();
            again = choose_again(batch);
            if (*again == Again::watched) {
              checks.make_ready_watched(batch.launches);
            } else if (*again == Again::first_launches && !is_whole) {
              choose_first(batch);
            } else {
              checks.make_ready(batch.launches);
              if (*again == Again::no && begins_early) checks.begin_early(batch.launches);
            }
          },
      .after =
          [&](const Batch& batch) {
            if (checks.has_begun_early()) checks.judge_earlier();
            else look();
            const Again how = again ? *again : choose_again(batch);
            again.reset();
            launch_again(batch, how, [&] { checks.make_ready(batch.launches); });
          },
      .end =
          [&](const Batch& batch) {
            checks.settle();
            const int fewest = can_watch ? kFewestWhereWatched : kFewestChecks;
            while (batch.launches > 1 && checked < fewest)
              launch_again(
                  batch,
                  can_watch && kinds.next(checks, 2) ? Again::watched : Again::first_launches,
                  [&] { choose_first(batch); });
            // The last has the B of the reference in its last launch.
            checks.restore();
            restart();
            const int last =
                reads_c ? 1 : 1 + (batch.launches - 1) / checks.views() * checks.views();
            late = late_length(batch.launches);
            const auto meanwhile = [&] { checks.make_ready(late, false); };
            if (is_whole) launch_batch(device, launch, last, sampler, meanwhile);
            else batch.first(last, meanwhile);
            take_c(input);
            right = right && verify(input, row);
          }};
  const Preemptions preemptions;
  const ProcessorsUsed processors;
  Times times;
  const OwnSeconds since_hot(launching_threads(device.info().kind));
  const auto sample = [&] {
    poisoned = false;
    launches_so_far = 0;
    stalls.begin();
    return sample_hot(device, launch, limits, sampler, around_hot);
  };
  times.hot = take_steadily(device, row, [&] {
    try {
      return sample();
    } catch (const CannotBeWatched&) {
      can_watch = false;
      sampler.apart = true;
      checked = 0;
      return sample();
    }
  });
  if (!on_gpu) {
    row.metrics["preemptions_per_s"] = preemptions.rate();
    if (const double used = processors.mean(); used > kMostProcessors * device.info().sm_count)
      row.metrics["processors_used"] = used;
  }
  if (!right) return std::nullopt;
  stalls.add(times.hot, since_hot.waited());
  const int batch = times.hot.launches_per_sample;
  const int late_batches = info.inspects_b ? kFewestChecks : kLateBatches;
  for (int left = batch > 1 ? late_batches : 0; left > 0; --left)
    launch_late_batch(batch, std::exchange(late, late_length(batch)),
                      [&] { checks.make_ready(left > 1 ? late : 1, false); });

  const AroundSample around_cold = {
      .before =
          [&](int launches) {
            poll_interrupt();
            device.wait_idle();  // what goes on reading would undo the flush
            poison_c();
            device.unreserve_cache();
            checks.before(launches, false);
          },
      // The flush lasts longer than it takes to begin a launch that does not wait for it.
      .flushed = [&] { write_late(0); },
      .meanwhile =
          [&](const Batch&) {
            read_soon();
            checks.make_ready(1, false);
          },
      .after = [&](const Batch&) { look(); },
      .end =
          [&](const Batch& single) {
            for (int left = kLateLaunches; left > 0; --left) launch_alone(left == 1);
            checks.restore();
            poison_c();
            device.flush_cache();
            single.first(1);
            take_c(input);
            right = right && verify(input, row);
          }};
  const OwnSeconds since_cold(launching_threads(device.info().kind));
  times.cold = take_steadily(
      device, row, [&] { return sample_cold(device, launch, limits, sampler, around_cold); });
  if (!right) return std::nullopt;
  stalls.add(times.cold, since_cold.waited());
  if (const double ms = stalls.longest(times.cold.median_us); ms > kHiddenPreparationMs) {
    row.metrics["launch_stall_ms"] = ms;
    if (const int others = on_gpu ? nvml_other_processes(device.info().uuid) : 0; others > 0)
      row.metrics["gpu_processes"] = others;
  }
  // The C that the timed launches left shows that one of them worked, not that each did.
  const auto check = [&](bool known) { return verify(input, row, "a later launch: ", known); };
  const bool stays_right = launches_stay_right(device, info, input.operands->c,
                                               start_and_launch(input, [&] { launch(0); }), check);
  return stays_right ? std::optional(std::move(times)) : std::nullopt;
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

}  // namespace

LeastTimes least_times(const CaseInput& input) {
  constexpr double kMargin = 4;  // a choice: cores may write faster in another moment
  Device& device = *input.device;
  const auto c_bytes = static_cast<double>(input.operands->c.bytes());
  LeastTimes least;
  const Rates rates = fastest_rates(device);
  least.writing_us = c_bytes / (kMargin * rates.bytes_per_second) * 1e6;
  if (!input.b_is_drawn) return least;
  const CsrMatrix& a = input.checked_a();
  std::optional<std::int64_t>& not_zero = input.found->values_not_zero;
  if (!not_zero) not_zero = a.nnz() - std::ranges::count(a.values, 0.0F);
  const double products = static_cast<double>(*not_zero) * input.operands->b.cols;
  least.products_us = 2 * products / rates.flops * 1e6;
  return least;
}

bool take_times(const CaseInput& input, const SampleLimits& limits, ScaledLaunches& launches,
                ResultRow& row) {
  Device& device = *input.device;
  SpotChecks checks(input.checked_a(), input.checked_row_ids(), *input.operands, bound_of(input),
                    input.problem.precision, input.choice->kernel->info().inspects_b, device,
                    input.update, input.b_is_drawn);
  const LaunchAt launch = [&](int at) {
    launches.launch(checks.b(at), input.operands->c, input.scalars(), device.stream());
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
  const LeastTimes least = least_times(input);
  row.metrics["least_us"] = std::max(least.writing_us, least.products_us);
  if (const std::string why = why_impossible(least, times->hot.median_us); !why.empty()) {
    call_wrong(input, row, why);
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

}  // namespace spmmbench
