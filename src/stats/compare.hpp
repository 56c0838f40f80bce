#pragma once
// Is NEW slower than BASE? One case, or many cases pooled, and the verdicts over all of them.
// docs/comparing.md derives what is here.
//
// A run counts once, by its median. The samples of a run share its memory addresses, clocks and
// neighbours, so a thousand of them say no more about the next run than ten do.

#include <optional>
#include <span>
#include <vector>

namespace spmmbench {

// The positive times of one run, in microseconds, in the order measured.
using RunTimes = std::vector<double>;

// Natural logarithms of the medians of runs.
struct RunLevels {
  std::vector<double> base, fresh;  // at least one each
  std::vector<double> repeats;      // of one build, from a calibration: only their spread counts

  bool show_spread() const;  // whether any of the three has two runs
};
RunLevels levels_of(std::span<const RunTimes> base, std::span<const RunTimes> fresh);

// The estimated difference between the two sides, and how sure it is.
struct Shift {
  double log_ratio = 0;       // of new / base
  double standard_error = 0;  // of log_ratio; infinite when it is not known
  double freedom = 0;         // degrees of freedom of standard_error
  double margin = 0;          // a ratio within 1 + margin is no change
  double run_deviation = 0;   // of one run's level; 0 when it was not measured
  // Whether the rank test over runs agrees: its exact p is below 0.01, or as small as so few runs
  // allow. The test needs no assumption about the distribution of runs.
  bool runs_slower = true, runs_faster = true;
  // Other work on the machine may change a run by any amount, so no change stands out by its size.
  bool on_cpu = false;
  // It was made from these. Empty with a calibration, or with one run of each side.
  RunLevels levels;

  double ratio() const;
  double p_slower() const;  // p-value of: the ratio is at most 1 + margin
  double p_faster() const;  // of: it is at least 1 / (1 + margin)
  double p_same() const;    // of: it lies outside these two bounds
  double t_slower() const;  // Student's t of p_slower
  double t_faster() const;
};

// The shift, judged by the spread of repeated runs: two or more of a side, or of a calibration.
Shift shift_of_runs(const RunLevels& levels, double min_effect);

// The shift, judged from one run of each side. That does not show how far runs differ, so the
// margin includes the largest difference seen between runs of one build on one GPU.
Shift shift_of_single_runs(const RunTimes& base, const RunTimes& fresh, double min_effect);
// The same for many cases together: their log ratios.
Shift mean_shift_of_single_runs(std::span<const double> log_ratios, double min_effect);
// The mean of several, which may depend on one another in any way: its error is as large as if they
// moved together.
struct WeightedShift {
  Shift shift;
  double weight = 1;
};
Shift mean_of_shifts(std::span<const WeightedShift> shifts);
// When nothing can be said, as with one run of each side on a CPU.
Shift unknown_shift(double log_ratio);

enum class Change { same, faster, slower, unclear, not_able_to_tell };

struct Decision {
  Change change = Change::unclear;
  // The smallest slowdown, as a fraction, that would have been found with a probability of 90 % if
  // no other case had changed; infinity when there is none.
  double resolution = 0;
};

// How the hypotheses of a family share alpha (multiple.hpp): geometric means by Holm's procedure,
// cases by that of Benjamini and Hochberg. Cases must also stand out among relabelled runs
// (relabel.hpp): chance may explain at most the share alpha of the cases that are called slower. On
// a GPU a change larger than any seen between runs of one build need not stand out.
enum class Family { geometric_means, cases };

// Slower or faster: the family's procedure finds the change, and the ranks of the runs agree. Not
// able to tell: neither of these, and a slowdown of `limit` could have gone unseen. Same: p_same is
// below alpha. Unclear: all else.
std::vector<Decision> decide(std::span<const Shift> shifts, double alpha, double limit,
                             Family family);

// How many runs of each side would show a slowdown of `limit` among this many hypotheses, if the
// runs of no other case took levels. None when the spread of runs was not measured, or when more
// than a hundred would be needed.
std::optional<int> runs_needed(const Shift& shift, double alpha, std::size_t hypotheses,
                               double limit, Family family);

}  // namespace spmmbench
