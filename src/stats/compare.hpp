#pragma once
// Is NEW slower than BASE? One case, or many cases pooled, and the verdicts over all of them.
// docs/methodology.md, "Comparing two runs", derives what is here.
//
// A run counts once, by its median: samples of a run share its memory addresses, clocks and
// neighbours, so that a thousand of them say no more of the next run than ten do.

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
};
RunLevels levels_of(std::span<const RunTimes> base, std::span<const RunTimes> fresh);

// Between the two sides: an estimate and what it is worth.
struct Shift {
  double log_ratio = 0;       // of new / base
  double standard_error = 0;  // of log_ratio; infinite when nothing shows it
  double freedom = 0;         // degrees of freedom of standard_error
  double margin = 0;          // a ratio within 1 + margin is no change
  double run_deviation = 0;   // of one run's level; 0 when it was not measured
  // Whether the ranks of the runs agree: exact p below 0.01, or as small as so few runs allow.
  // Holds whatever the distribution of runs.
  bool runs_slower = true, runs_faster = true;
  RunLevels levels;  // it was made of; empty with a calibration, or of one run of each side

  double ratio() const;
  double p_slower() const;  // that ratio <= 1 + margin, and yet this was measured
  double p_faster() const;  // that ratio >= 1 / (1 + margin)
  double p_same() const;    // that the ratio lies outside both
  double t_slower() const;  // Student's t of p_slower
  double t_faster() const;
};

// From the spread of repeated runs: two or more of a side, or of a calibration.
Shift shift_of_runs(const RunLevels& levels, double min_effect);

// From one run of each side, which does not show how far runs differ. The margin therefore covers
// what runs of one build on one GPU were seen to differ by.
Shift shift_of_single_runs(const RunTimes& base, const RunTimes& fresh, double min_effect);
// The same for many cases together: their log ratios.
Shift mean_shift_of_single_runs(std::span<const double> log_ratios, double min_effect);
// When nothing can be said, as of one run of each side on a CPU.
Shift unknown_shift(double log_ratio);

enum class Change { same, faster, slower, unclear, not_able_to_tell };

struct Decision {
  Change change = Change::unclear;
  // The smallest slowdown, as a fraction, that would have been found with a probability of 90 % had
  // it been the only one; infinity when none.
  double resolution = 0;
};

// How the hypotheses of a family share alpha (multiple.hpp): geometric means by Holm's procedure,
// cases by that of Benjamini and Hochberg. Cases must also stand out among relabelled runs: as many
// as `alpha` of those called slower, at most, may be expected by chance from runs that take
// levels. A change beyond what runs of one build were seen to do needs no such proof.
enum class Family { geometric_means, cases };

// Slower and faster: what the family's procedure rejects, where the runs agree. Not able to tell:
// neither, and a slowdown of `limit` could have gone unseen. Same: p_same below alpha.
std::vector<Decision> decide(std::span<const Shift> shifts, double alpha, double limit,
                             Family family);

// How many runs of each side would resolve `limit` among `hypotheses`, if no other case took
// levels; none when the run's own spread was not measured, or when more than a hundred are needed.
std::optional<int> runs_needed(const Shift& shift, double alpha, std::size_t hypotheses,
                               double limit, Family family);

}  // namespace spmmbench
