#pragma once
// Many hypotheses tested at once: which of them are rejected.

#include <span>
#include <vector>

namespace spmmbench {

// Step-down (Holm 1979): the probability of any false rejection stays below alpha, however the
// hypotheses depend on one another.
std::vector<bool> holm(std::span<const double> p, double alpha);

// Step-up (Benjamini and Hochberg 1995): at most a share alpha of the rejections is expected to be
// false. When all hypotheses hold, every rejection is false, so the probability of any rejection
// stays below alpha as well. Valid for independent and for positively dependent p-values (Benjamini
// and Yekutieli 2001).
std::vector<bool> benjamini_hochberg(std::span<const double> p, double alpha);

}  // namespace spmmbench
