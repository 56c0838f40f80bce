#include "stats/students_t.hpp"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>

namespace spmmbench {

double t_upper_tail(double t, double freedom) {
  if (std::isinf(t)) return t > 0 ? 0 : 1;
  return boost::math::cdf(boost::math::complement(boost::math::students_t(freedom), t));
}

double t_upper_quantile(double p, double freedom) {
  return boost::math::quantile(boost::math::complement(boost::math::students_t(freedom), p));
}

}  // namespace spmmbench
