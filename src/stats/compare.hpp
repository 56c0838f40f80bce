#pragma once
// Old against new times of one case, and the verdicts over many cases.
//
// The samples of a side's runs are put together in the order measured; a rank test over their
// effective number (rank_test.hpp) asks whether the new times are longer than the old ones by more
// than a margin, shorter by more than it, or within it. Several runs per side let the test see how
// far runs differ as a whole; one run per side cannot, and then only the margin covers it.

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
};

// Series of at least one positive time each, in microseconds.
TimeComparison compare_times(std::span<const double> base_us, std::span<const double> new_us,
                             double margin);

// Slower and faster: p below alpha after Holm's correction over all the cases, so that the
// probability of even one false SLOWER among them stays below alpha. Same: p_same below alpha.
std::vector<Change> decide(std::span<const TimeComparison> cases, double alpha);

}  // namespace spmmbench
