// How often does `compare` call something SLOWER when nothing changed? `spmmbench_gate_simulation
// REPETITIONS CASES [WORDS]` draws that many comparisons of as many cases for every kind of noise
// below (with WORDS in its name), and prints in how many anything, a case or a geometric mean, was
// called SLOWER.

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <random>
#include <string_view>

#include "report/comparison.hpp"

namespace {

using namespace spmmbench;

// Draws the deviation of one run's level of one case from the case's own. `state`: a bit that all
// cases of the run share.
using Deviation = std::function<double(std::size_t case_number, bool state, std::mt19937& random)>;

struct Noise {
  const char* what;
  std::size_t runs;  // of each side
  double common;     // standard deviation of what all cases of a run share
  Deviation own;
  bool on_cpu = false;
  std::size_t parts = 1;   // of the sweep, each with runs of its own
  bool loses_one = false;  // every case has no times in one run of BASE, many cases in each
};

double normal(std::mt19937& random, double deviation) {
  return std::normal_distribution<double>(0, deviation)(random);
}

// Every tenth case, of one kernel, takes one of two levels in each run, `step` apart.
Deviation two_levels(double step) {
  return [step](std::size_t i, bool, std::mt19937& random) {
    return normal(random, 0.002) + (i % 10 == 0 && random() % 2 == 0 ? step : 0);
  };
}

// Other work on the machine takes hold of three runs of a case in ten.
double disturbed(std::size_t, bool, std::mt19937& random) {
  return normal(random, 0.002) + (random() % 10 < 3 ? std::log(1.4) : 0);
}

const Noise kNoises[] = {
    {"runs scatter by 0.3 %, 7 runs", 7, 0,
     [](std::size_t, bool, std::mt19937& random) { return normal(random, 0.003); }},
    {"the same, and runs drift as a whole by 0.5 %", 7, 0.005,
     [](std::size_t, bool, std::mt19937& random) { return normal(random, 0.003); }},
    {"one case in ten scatters by 3 %, the others by 0.2 %", 7, 0.002,
     [](std::size_t i, bool, std::mt19937& random) {
       return normal(random, i % 10 == 0 ? 0.03 : 0.002);
     }},
    {"scatter without a variance (t with 2 degrees)", 7, 0.002,
     [](std::size_t, bool, std::mt19937& random) {
       return 0.003 * std::student_t_distribution<double>(2)(random);
     }},
    {"one case in ten has two levels 4 % apart, 3 runs", 3, 0.002, two_levels(0.04)},
    {"one case in ten has two levels 4 % apart, 5 runs", 5, 0.002, two_levels(0.04)},
    {"one case in ten has two levels 4 % apart, 7 runs", 7, 0.002, two_levels(0.04)},
    {"one case in ten has two levels 4 % apart, 12 runs", 12, 0.002, two_levels(0.04)},
    {"one case in ten has two levels 12 % apart, 7 runs", 7, 0.002, two_levels(0.12)},
    {"the same level for all cases of a run, 4 % apart, 7 runs", 7, 0.002,
     [](std::size_t i, bool state, std::mt19937& random) {
       return normal(random, 0.002) + (i % 10 == 0 && state ? 0.04 : 0);
     }},
    {"three runs that scatter by 1 %", 3, 0.002,
     [](std::size_t, bool, std::mt19937& random) { return normal(random, 0.01); }},
    {"one run: two levels 7 % apart, 0.3 % otherwise", 1, 0.003, two_levels(0.07)},
    {"runs drift by 0.5 %, 7 runs of each half of the cases", 7, 0.005,
     [](std::size_t, bool, std::mt19937& random) { return normal(random, 0.003); }, false, 2},
    {"runs drift by 0.5 %, each case has lost one of 7 of BASE", 7, 0.005,
     [](std::size_t, bool, std::mt19937& random) { return normal(random, 0.003); }, false, 1, true},
    {"two levels 4 % apart, each case has lost one of 7 of BASE", 7, 0.002, two_levels(0.04), false,
     1, true},
    {"on a CPU three runs in ten take 1.4 x the time, 2 runs", 2, 0.002, disturbed, true},
    {"on a CPU three runs in ten take 1.4 x the time, 3 runs", 3, 0.002, disturbed, true},
    {"on a CPU three runs in ten take 1.4 x the time, 7 runs", 7, 0.002, disturbed, true},
};

// As many kernels as in a recorded sweep, in families of one, two and more.
const char* const kKernels[] = {"auto",
                                "async_wcsr",
                                "async_bcsr",
                                "rsh",
                                "csr_row_split",
                                "cusparse_csr_default",
                                "cusparse_csr_alg1",
                                "cusparse_csr_alg2",
                                "cusparse_csr_alg3",
                                "cublas_dense"};
constexpr std::size_t kKernelCount = std::size(kKernels);

std::vector<ComparedCase> cases_of(std::size_t count) {
  std::vector<ComparedCase> cases(count);
  for (std::size_t i = 0; i < count; ++i) {
    cases[i].row.kernel = kKernels[i % kKernelCount];
    cases[i].row.precision = "fp16";
  }
  return cases;
}

// What all cases of a run share.
struct Run {
  double level;
  bool state;
};

std::vector<Run> draw_runs(const Noise& noise, std::mt19937& random) {
  std::vector<Run> runs;
  for (std::size_t run = 0; run < noise.runs * noise.parts; ++run)
    runs.push_back({normal(random, noise.common), random() % 2 == 0});
  return runs;
}

CaseTimes single_runs(double base, double fresh, double min_effect, std::mt19937& random) {
  std::vector<RunTimes> sides(2);
  for (int i = 0; i < 10; ++i) {
    sides[0].push_back(100 * std::exp(base + normal(random, 0.002)));
    sides[1].push_back(100 * std::exp(fresh + normal(random, 0.002)));
  }
  CaseTimes times;
  times.levels = levels_of(std::span(sides).first(1), std::span(sides).last(1));
  times.shift = shift_of_single_runs(sides[0], sides[1], min_effect);
  return times;
}

// Whether a comparison in which every case changed by `change`, a logarithm, calls anything SLOWER.
bool any_false_slower(const Noise& noise, double change, std::vector<ComparedCase>& cases,
                      std::mt19937& random) {
  const ComparisonOptions options;
  const std::vector<Run> base = draw_runs(noise, random), fresh = draw_runs(noise, random);
  std::vector<Shift> shifts;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CaseTimes times;
    const std::size_t number = i / kKernelCount;  // among those of its kernel
    const std::size_t first = number % noise.parts * noise.runs;
    const std::size_t lost = noise.loses_one ? number % noise.runs : base.size();
    for (std::size_t run = first; run < first + noise.runs; ++run) {
      const auto level = [&](const Run& one) {
        return one.level + noise.own(i, one.state, random);
      };
      times.levels.fresh.push_back(change + level(fresh[run]));
      times.runs.second.push_back(run);
      if (run == lost) continue;
      times.levels.base.push_back(level(base[run]));
      times.runs.first.push_back(run);
    }
    if (noise.runs == 1)
      times = single_runs(times.levels.base[0], times.levels.fresh[0], options.min_effect, random);
    else times.shift = shift_of_runs(times.levels, options.min_effect);
    times.shift.on_cpu = noise.on_cpu;
    shifts.push_back(times.shift);
    cases[i].times = std::move(times);
  }
  for (const Decision& one : decide(shifts, alpha_share(options), options.resolve, Family::cases))
    if (one.change == Change::slower) return true;
  for (const ComparedGroup& group : compare_groups(cases, options))
    if (group.decision.change == Change::slower) return true;
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  const int repetitions = argc > 1 ? std::atoi(argv[1]) : 1000;
  const std::size_t count = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1928;
  const std::string_view words = argc > 3 ? argv[3] : "";
  std::vector<ComparedCase> cases = cases_of(count);
  std::mt19937 random(1);
  fmt::print("{} comparisons of {} cases: any SLOWER\n", repetitions, count);
  fmt::print("{:<58} {:>10} {:>10}\n", "", "unchanged", "at limit");
  for (const Noise& noise : kNoises) {
    if (std::string_view(noise.what).find(words) == std::string_view::npos) continue;
    int unchanged = 0, at_limit = 0;
    for (int i = 0; i < repetitions; ++i) {
      unchanged += any_false_slower(noise, 0, cases, random);
      at_limit +=
          any_false_slower(noise, std::log1p(ComparisonOptions::kDefaultMinEffect), cases, random);
    }
    fmt::print("{:<58} {:>10} {:>10}\n", noise.what, unchanged, at_limit);
    std::fflush(stdout);
  }
}
