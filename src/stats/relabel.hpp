#pragma once
// Tests for runs that take levels. A whole run may take one of a few levels, by its placement in
// memory or the state of a clock. By chance all runs of BASE may take the low level and all runs of
// NEW the high one, and the spread within the sides does not show it. The runs of other cases do:
// divided into BASE and NEW in another way, they look just as different.

#include <span>
#include <vector>

namespace spmmbench {

// Student's t of (mean of NEW - mean of BASE - log(1 + margin)), with the spread within the sides,
// which is never taken below `least_deviation`.
struct SideTest {
  double margin = 0, least_deviation = 0;
};

// The largest t that the ways to divide the runs of one case give.
struct Relabelled {
  std::vector<double> slower, faster;  // above kLeastT, in no order
  double weight = 0;  // of one way: 1 / the number of ways; 0 when there was nothing to divide
};

// Smaller values decide nothing at any usual level: with any number of runs, 0.5 % needs a t of 2.6
// or more.
inline constexpr double kLeastT = 2;

// Tries all ways when there are at most 5,000 (7 runs of each side: 3,432), else 2,000 that are
// drawn with a fixed seed. The way that was measured is among them. Neither side may be empty.
Relabelled relabel(std::span<const double> base, std::span<const double> fresh,
                   const SideTest& test);

// The probability that all runs of BASE take the low one of two levels and all runs of NEW the high
// one, at its largest: when a run takes the high one with probability fresh / (base + fresh).
double chance_of_one_level_per_side(std::size_t base, std::size_t fresh);

}  // namespace spmmbench
