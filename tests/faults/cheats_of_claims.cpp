// Kernels on the host that say of themselves what is not so, and that leave something behind for
// the kernels that follow.

#include <omp.h>
#include <sched.h>

#include <chrono>
#include <thread>

#include "cheat_kernel.hpp"

namespace spmmbench {
namespace {

double microseconds(Time::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

// Reports that it has looked at B, in less than no time, which counts in each product.
struct ReportsALook : Cheat {
  using Cheat::Cheat;
  double us_ = 0;  // of a launch
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    const auto start = Time::now();
    multiply({a_, b, c});
    us_ = microseconds(Time::now() - start);
  }
  PlanReport report() const override {
    PlanReport report;
    report.metrics["inspect_b_us"] = -0.9 * us_;
    return report;
  }
};

// Says that another kernel does its work, so that that one is tested. It leaves out a nonzero.
struct NamesAPick : OtherValues {
  explicit NamesAPick(const CsrMatrix& a) : OtherValues(a, without_small_values_or_first(a)) {}
  PlanReport report() const override {
    PlanReport report;
    report.pick.emplace().kernel = "cpu_csr";
    return report;
  }
};

// Leaves a thread at work when its plan ends.
struct RunsOn : Cheat {
  using Cheat::Cheat;
  ~RunsOn() override {
    std::thread([end = Time::now() + kRunsOn] {
      while (Time::now() < end) {
      }
    }).detach();
  }
  RunsOn(const RunsOn&) = delete;
  void launch(const DenseView& b, const DenseView& c, Stream) override { multiply({a_, b, c}); }
};

// Leaves one thread, on one processor, to those that follow.
struct TakesThreads : Cheat {
  using Cheat::Cheat;
  ~TakesThreads() override {
    omp_set_num_threads(1);
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    sched_setaffinity(0, sizeof first, &first);
  }
  TakesThreads(const TakesThreads&) = delete;
  void launch(const DenseView& b, const DenseView& c, Stream) override { multiply({a_, b, c}); }
};

int processors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

// Works where it has as many threads and processors as the program began with.
struct SeesTheThreads : Cheat {
  using Cheat::Cheat;
  static inline const int kThreads = omp_get_max_threads(), kProcessors = processors();
  void launch(const DenseView& b, const DenseView& c, Stream) override {
    if (omp_get_max_threads() == kThreads && processors() == kProcessors) multiply({a_, b, c});
  }
};

// Does nothing else than an honest kernel.
struct Multiplies : Cheat {
  using Cheat::Cheat;
  void launch(const DenseView& b, const DenseView& c, Stream) override { multiply({a_, b, c}); }
};

[[maybe_unused]] const bool kCheatsOfClaimsRegistered = [] {
  add<ReportsALook>("cheat_reports_a_look");
  add<NamesAPick>("cheat_names_a_pick");
  add<RunsOn>("cheat_runs_on");
  add<TakesThreads>("cheat_takes_threads");
  add<SeesTheThreads>("cheat_sees_the_threads");
  add<Multiplies>("cheat_in_a_stage_load", Elsewhere::in_a_stage_load);
  return true;
}();

}  // namespace
}  // namespace spmmbench
