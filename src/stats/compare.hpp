#pragma once
// Old against new times of one case, and the verdicts over many cases.
//
// A rank test asks whether the new times are longer than the old ones by more than a margin,
// shorter by more than it, or within it. It counts effective samples, fewer than were taken:
// samples of a run depend on one another, and runs differ as a whole (rank_test.hpp; design effect
// of Kish 1965 with the intraclass correlation of the runs of both sides). With one run on either
// side the second cannot be seen, and only the margin covers it.

#include <span>
#include <vector>

namespace spmmbench {

enum class Change { same, faster, slower, unclear };

struct TimeComparison {
  double base_us = 0, new_us = 0;  // medians of all samples
  double ratio = 1;                // new / base
  double p_slower = 1;             // new > base * (1 + margin)
  double p_faster = 1;             // new < base / (1 + margin)
  double p_same = 1;               // the larger p of: new < base * (1 + margin), new > base / ...
  double base_effective = 0, new_effective = 0;  // samples
  // Whether the runs, each counting once by its median, say the same: exact p below 0.01, or as
  // small as so few runs allow (one run per side always agrees). Holds whatever the distribution of
  // runs.
  bool runs_slower = true, runs_faster = true;
};

// The positive times of one run, in microseconds, in the order measured.
using RunTimes = std::vector<double>;

// At least one run per side, none empty.
TimeComparison compare_times(std::span<const RunTimes> base, std::span<const RunTimes> fresh,
                             double margin);

// Slower and faster: p below alpha after Holm's correction over all the cases, so that the
// probability of even one false SLOWER among them stays below alpha, and the runs agree. Same:
// p_same below alpha.
std::vector<Change> decide(std::span<const TimeComparison> cases, double alpha);

}  // namespace spmmbench
