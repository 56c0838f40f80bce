#include "measure/checked_times.hpp"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "gpu/nvml.hpp"
#include "measure/case_checks.hpp"
#include "measure/preparation.hpp"
#include "measure/repeat.hpp"
#include "measure/watched_batches.hpp"
#include "process/interrupt.hpp"
#include "process/preemptions.hpp"
#include "process/processor_seconds.hpp"
#include "process/waited_seconds.hpp"
#include "timing/throttling.hpp"

namespace spmmbench {
namespace {

constexpr double kLateUs = 20;  // several times what it takes to start a kernel
constexpr const char* kTimed = "a timed launch";
constexpr const char* kLate = "a launch after a late change of B";
constexpr int kFewestChecks = 8;  // of batches that are launched once more, or change late

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

// A case that is timed: its launches, and what happens to B and C around them, hot and cold.
struct TimedCase {
  TimedCase(const CaseInput& of, const LaunchAt& launch_product, SpotChecks& spot_checks,
            ResultRow& to)
      : input(of),
        checks(spot_checks),
        row(to),
        device(*of.device),
        info(of.choice->kernel->info()),
        on_gpu(device.info().kind == DeviceKind::cuda),
        is_whole(of.take_c && on_gpu),
        reads_c(of.update.beta != 0),
        stalls(device.info().kind),
        launch([this, launch_product](int at) {
          ++so_far;
          launch_product(at);
        }) {
    sampler.by_host_clock = info.ignores_stream;
    sampler.max_batch = std::min(sampler.max_batch, checks.most_launches());
  }
  TimedCase(const TimedCase&) = delete;
  TimedCase& operator=(const TimedCase&) = delete;

  // The checks after sampling must see what the timed launches wrote. So C is poisoned after any
  // recording, just before the first timed launch, and before every cold one: the flush that
  // follows leaves as little of C in the cache as the launch before it did.
  void poison_c() const {
    take_c(input);
    start_c(input);
  }
  // Launches that read C begin with the same one in every batch, and go on with what they wrote.
  void restart() const {
    if (reads_c) start_c(input);
  }
  void look(const char* what = kTimed) const {
    take_c(input);
    checks.after(what);
  }
  void read_soon() const {
    if (!input.take_c) checks.read_soon();
  }
  // B changes between the launches, and so late that one which does not wait for those before it
  // has the values that were there.
  void write_late(double us) const {
    checks.write_changes(us);
    if (info.ignores_stream) device.synchronize();
  }
  void verify_c() {
    take_c(input);
    right = right && verify(input, row);
  }

  const CaseInput& input;
  SpotChecks& checks;
  ResultRow& row;
  Device& device;
  const KernelInfo& info;
  const bool on_gpu;
  // A callable's result lies where the last launch that was recorded put it. The first launches of
  // a CUDA graph put theirs elsewhere, so that such a graph is launched as a whole.
  const bool is_whole;
  const bool reads_c;
  SamplerOptions sampler;
  Stalls stalls;
  int so_far = 0;  // launches
  const LaunchAt launch;
  bool right = true;  // every C that was verified
};

// Batches and single launches before the last of which B changes late. A launch that does not wait
// for what is before it shows in each of them.
class LateLaunches {
 public:
  explicit LateLaunches(TimedCase& timed) : case_(timed) {}

  // Chooses the length of the first batch, if hot samples have batches of up to `most`.
  void choose_first(int most) { next_ = length_up_to(most); }
  void make_first_ready() { case_.checks.make_ready(next_, false); }

  void launch_batches(int most) {
    constexpr int kBatches = 2;
    const int batches = case_.info.inspects_b ? kFewestChecks : kBatches;
    for (int left = most > 1 ? batches : 0; left > 0; --left)
      launch_batch_of(std::exchange(next_, length_up_to(most)), most,
                      [&] { case_.checks.make_ready(left > 1 ? next_ : 1, false); });
  }

  void launch_alone() {
    constexpr int kLaunches = 2;
    for (int left = kLaunches; left > 0; --left) launch_one(left == 1);
  }

 private:
  int length_up_to(int most) {
    constexpr int kMost = 16;  // enough for launches that overlap those before them
    return case_.checks.length_up_to(std::min(most, kMost));
  }

  // `meanwhile` is called while it runs.
  void launch_batch_of(int count, int most, const std::function<void()>& meanwhile) {
    // Where B is constant, C is overwritten there: a pause would tell a kernel so.
    const double us = case_.info.inspects_b ? 0 : std::max(kLateUs, case_.sampler.sample_us / most);
    case_.restart();
    case_.checks.before(count, false);
    case_.stalls.begin();
    const LaunchAt launch = [&](int at) {
      if (at == count - 1) case_.write_late(us);
      case_.launch(at);
    };
    launch_batch(case_.device, launch, count, case_.sampler, [&] {
      case_.read_soon();
      meanwhile();
    });
    case_.look(kLate);
    case_.stalls.end(2 * count);  // recorded and replayed
  }

  void launch_one(bool last) {  // not as a graph, nor behind an event
    case_.poison_c();
    case_.checks.before(1, false);
    case_.stalls.begin();
    case_.write_late(kLateUs);
    case_.launch(0);
    if (case_.on_gpu) case_.read_soon();
    if (case_.on_gpu && !last) case_.checks.make_ready(1, false);
    case_.look(kLate);
    case_.stalls.end(1);
  }

  TimedCase& case_;
  int next_ = 1;  // launches of the batch that comes next
};

// Hot samples. The first launches of a batch, launched once more, show what a launch in the middle
// of others does, but for one that leaves its work out where others follow. A batch that is watched
// shows all of them. One of each block of samples is followed by one or the other, and at least so
// many are in all.
class HotSamples {
 public:
  HotSamples(TimedCase& timed, LateLaunches& late)
      : case_(timed),
        late_(late),
        watched_(case_.checks, case_.input.operands->c.type,
                 [this] { return make_cuda_watcher(case_.device); }),
        begins_early_(case_.on_gpu && !case_.input.take_c && case_.input.update.plain()) {
    const bool as_graph = case_.on_gpu && !case_.is_whole && !case_.sampler.by_host_clock;
    can_watch_ = as_graph && case_.checks.can_be_watched();
    case_.sampler.apart = as_graph && !can_watch_ && !case_.reads_c;
  }

  Timing take(const SampleLimits& limits) {
    try {
      return sample(limits);
    } catch (const CannotBeWatched&) {
      can_watch_ = false;
      case_.sampler.apart = true;
      checked_ = 0;
      return sample(limits);
    }
  }

 private:
  // How a batch is launched once more.
  enum class Again { no, first_launches, watched };
  struct CannotBeWatched {};

  Timing sample(const SampleLimits& limits) {
    poisoned_ = false;
    case_.so_far = 0;
    case_.stalls.begin();
    const AroundSample around = {
        .begin = [this] { begin(); },
        .warming = [this](const Batch& batch) { case_.checks.make_ready(batch.launches); },
        .before = [this](int launches) { before(launches); },
        .meanwhile = [this](const Batch& batch) { meanwhile(batch); },
        .after = [this](const Batch& batch) { after(batch); },
        .end = [this](const Batch& batch) { end(batch); }};
    return sample_hot(case_.device, case_.launch, limits, case_.sampler, around);
  }

  // A reset of lines that persist changes hot times where they stay in the cache
  // (docs/decisions/locality.md): a flush evicts them, and the batch brings them in anew.
  void begin() {
    cut_short_ = 0;  // of another batch
    again_.reset();
    if (!case_.on_gpu) return;
    case_.device.unreserve_cache();
    case_.device.flush_cache();
  }

  void before(int launches) {
    poll_interrupt();
    if (poisoned_) {
      case_.restart();
    } else {
      case_.stalls.end(case_.so_far + launches);
      case_.poison_c();
    }
    poisoned_ = true;
    case_.checks.before(launches);
  }

  void meanwhile(const Batch& batch) {
    case_.read_soon();
    again_ = choose_again(batch);
    if (*again_ == Again::watched) {
      case_.checks.make_ready_watched(batch.launches);
    } else if (*again_ == Again::first_launches && !case_.is_whole) {
      choose_first(batch);
    } else {
      case_.checks.make_ready(batch.launches);
      if (*again_ == Again::no && begins_early_) case_.checks.begin_early(batch.launches);
    }
  }

  void after(const Batch& batch) {
    if (case_.checks.has_begun_early()) case_.checks.judge_earlier();
    else case_.look();
    const Again how = again_ ? *again_ : choose_again(batch);
    again_.reset();
    launch_again(batch, how, [&] { case_.checks.make_ready(batch.launches); });
  }

  void end(const Batch& batch) {
    constexpr int kFewestWhereWatched = 3;
    SpotChecks& checks = case_.checks;
    checks.settle();
    const int fewest = can_watch_ ? kFewestWhereWatched : kFewestChecks;
    while (batch.launches > 1 && checked_ < fewest)
      launch_again(batch, next_kind(), [&] { choose_first(batch); });
    // The last has the B of the reference in its last launch.
    checks.restore();
    case_.restart();
    const int last = case_.reads_c ? 1 : 1 + (batch.launches - 1) / checks.views() * checks.views();
    late_.choose_first(batch.launches);
    const auto ready_late = [this] { late_.make_first_ready(); };
    if (case_.is_whole) launch_batch(case_.device, case_.launch, last, case_.sampler, ready_late);
    else batch.first(last, ready_late);
    case_.verify_c();
  }

  Again choose_again(const Batch& batch) {
    constexpr int kSamples = 4, kLaterSamples = 8, kEarly = 32;  // of a block; samples before these
    constexpr int kSamplesWhereWatched = 12;
    const int block = can_watch_                     ? kSamplesWhereWatched
                      : hot_blocks_.seen() >= kEarly ? kLaterSamples
                                                     : kSamples;
    if (batch.launches == 1 || !hot_blocks_.next(case_.checks, block)) return Again::no;
    return next_kind();
  }
  Again next_kind() {
    return can_watch_ && kinds_.next(case_.checks, 2) ? Again::watched : Again::first_launches;
  }

  void launch_again(const Batch& batch, Again how, const Batch::Meanwhile& meanwhile) {
    if (how == Again::no) return;
    ++checked_;
    if (how == Again::first_launches) launch_first(batch, meanwhile);
    else if (!watched_.launch(batch, meanwhile)) throw CannotBeWatched();
  }

  void choose_first(const Batch& batch) {
    cut_short_ = case_.checks.length_up_to(batch.launches);
    batch.make_ready(cut_short_);
    case_.checks.make_ready(cut_short_);
  }
  void launch_first(const Batch& batch, const Batch::Meanwhile& meanwhile) {
    if (case_.is_whole) return;
    if (cut_short_ == 0) choose_first(batch);
    case_.restart();
    case_.checks.before(cut_short_);
    batch.first(std::exchange(cut_short_, 0), [&] {
      case_.read_soon();
      meanwhile();
    });
    case_.look();
  }

  TimedCase& case_;
  LateLaunches& late_;
  WatchedBatches watched_;
  // What a sample wrote is then judged after the next one, and that has less to wait for.
  const bool begins_early_;
  bool can_watch_ = false;
  bool poisoned_ = false;  // C, before the first timed launch
  int checked_ = 0;        // batches that were launched once more
  // How many of the first launches follow, and what they need. On a GPU it is chosen and made while
  // others run. 0: not yet.
  int cut_short_ = 0;
  OneOfEachBlock hot_blocks_, kinds_;
  std::optional<Again> again_;  // after this sample, once it is known
};

Timing take_cold(TimedCase& timed, LateLaunches& late, const SampleLimits& limits) {
  const AroundSample around = {
      .before =
          [&](int launches) {
            poll_interrupt();
            timed.device.wait_idle();  // what goes on reading would undo the flush
            timed.poison_c();
            timed.device.unreserve_cache();
            timed.checks.before(launches, false);
          },
      // The flush lasts longer than it takes to begin a launch that does not wait for it.
      .flushed = [&] { timed.write_late(0); },
      .meanwhile =
          [&](const Batch&) {
            timed.read_soon();
            timed.checks.make_ready(1, false);
          },
      .after = [&](const Batch&) { timed.look(); },
      .end =
          [&](const Batch& single) {
            late.launch_alone();
            timed.checks.restore();
            timed.poison_c();
            timed.device.flush_cache();
            single.first(1);
            timed.verify_c();
          }};
  return sample_cold(timed.device, timed.launch, limits, timed.sampler, around);
}

// Says in the row how far the GPU kept its clocks up, and notes stalls.
Timing take_steadily(TimedCase& timed, const std::function<Timing()>& sample) {
  const OwnSeconds since(launching_threads(timed.device.info().kind));
  SteadyTiming steady = sample_steadily(timed.device, sample);
  if (steady.repeats > 0) timed.row.metrics["throttled_repeats"] += steady.repeats;
  if (steady.reasons != 0)
    timed.row.metrics["throttle_reasons"] = static_cast<double>(steady.reasons);
  if (timed.right) timed.stalls.add(steady.timing, since.waited());
  return std::move(steady.timing);
}

// Says in the row how far the CPU was the case's own.
Timing take_hot(TimedCase& timed, LateLaunches& late, const SampleLimits& limits) {
  // How many processors may work for each thread of OpenMP; the margin is for the program's own.
  constexpr double kMostProcessors = 1.25;
  HotSamples hot(timed, late);
  const Preemptions preemptions;
  const ProcessorsUsed processors;
  Timing timing = take_steadily(timed, [&] { return hot.take(limits); });
  if (timed.on_gpu) return timing;
  timed.row.metrics["preemptions_per_s"] = preemptions.rate();
  if (const double used = processors.mean(); used > kMostProcessors * timed.device.info().sm_count)
    timed.row.metrics["processors_used"] = used;
  return timing;
}

void note_stall(const TimedCase& timed, const Timing& cold) {
  const double ms = timed.stalls.longest(cold.median_us);
  if (ms <= kHiddenPreparationMs) return;
  timed.row.metrics["launch_stall_ms"] = ms;
  if (const int others = timed.on_gpu ? nvml_other_processes(timed.device.info().uuid) : 0;
      others > 0)
    timed.row.metrics["gpu_processes"] = others;
}

// The C that the timed launches left shows that one of them worked, not that each did.
bool stay_right(const TimedCase& timed) {
  const auto check = [&](bool known) {
    return verify(timed.input, timed.row, "a later launch: ", known);
  };
  return launches_stay_right(timed.device, timed.info, timed.input.operands->c,
                             start_and_launch(timed.input, [&] { timed.launch(0); }), check);
}

}  // namespace

std::optional<Times> take_checked_times(const CaseInput& input, const SampleLimits& limits,
                                        const LaunchAt& launch_product, SpotChecks& checks,
                                        ResultRow& row) {
  TimedCase timed(input, launch_product, checks, row);
  LateLaunches late(timed);
  Times times;
  times.hot = take_hot(timed, late, limits);
  if (!timed.right) return std::nullopt;
  late.launch_batches(times.hot.launches_per_sample);
  times.cold = take_steadily(timed, [&] { return take_cold(timed, late, limits); });
  if (!timed.right) return std::nullopt;
  note_stall(timed, times.cold);
  return stay_right(timed) ? std::optional(std::move(times)) : std::nullopt;
}

}  // namespace spmmbench
