#include "stats/students_t.hpp"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <map>
#include <utility>

namespace spmmbench {
namespace {

// Computes in double; the default, long double, takes five times as long.
using Policy = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
using StudentsT = boost::math::students_t_distribution<double, Policy>;

}  // namespace

double t_upper_tail(double t, double freedom) {
  if (std::isinf(t)) return t > 0 ? 0 : 1;
  return boost::math::cdf(boost::math::complement(StudentsT(freedom), t));
}

double t_upper_quantile(double p, double freedom) {
  // Kept, since thousands of cases ask for the same quantile.
  thread_local std::map<std::pair<double, double>, double> known;
  const auto [it, is_new] = known.try_emplace({p, freedom});
  if (is_new) it->second = boost::math::quantile(boost::math::complement(StudentsT(freedom), p));
  return it->second;
}

}  // namespace spmmbench
