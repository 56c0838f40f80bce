#pragma once
// What a difference between two sides is worth where a run takes one of a few levels as a whole
// (placement in memory, a clock's state): by chance all runs of BASE take the low one and all runs
// of NEW the high one, and no spread within a side shows it. The runs of other cases do: called
// BASE and NEW in another way, they would look as different.

#include <span>
#include <vector>

namespace spmmbench {

// Student's t of (mean of NEW - mean of BASE - log(1 + margin)), with the spread within the sides,
// which is never taken below `least_deviation`.
struct SideTest {
  double margin = 0, least_deviation = 0;
};

// Of one case: the largest t that other ways of dividing its runs give.
struct Relabelled {
  std::vector<double> slower, faster;  // above kLeastT, in no order
  double weight = 0;  // of one way: 1 / their number; 0 when there was nothing to divide
};

// Values below do not decide at any usual level: t is 2.6 at 0.5 % with any number of runs.
inline constexpr double kLeastT = 2;

// All ways when there are at most 5,000 (7 runs of each side: 3,432), else 2,000 drawn with a fixed
// seed. The way that was measured is among them. No side is empty.
Relabelled relabel(std::span<const double> base, std::span<const double> fresh,
                   const SideTest& test);

// The largest probability with which two levels come out one per side, the low one in BASE: of
// runs that take the high one with the least convenient probability, fresh / (base + fresh).
double chance_of_one_level_per_side(std::size_t base, std::size_t fresh);

}  // namespace spmmbench
