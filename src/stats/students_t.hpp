#pragma once
// Student's t distribution with a real number of degrees of freedom.

namespace spmmbench {

// P(T >= t).
double t_upper_tail(double t, double freedom);
// The t with P(T >= t) = p, for p in (0, 1).
double t_upper_quantile(double p, double freedom);

}  // namespace spmmbench
