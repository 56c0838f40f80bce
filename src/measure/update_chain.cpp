#include "measure/update_chain.hpp"

#include <cmath>
#include <limits>

namespace spmmbench {

void UpdateChain::launch(const TwoTermSum& product) {
  const double beta = std::abs(update_.beta);
  long double next = update_.alpha * (static_cast<long double>(product.sum) + product.low);
  double magnitude = std::abs(update_.alpha) * product.magnitude;
  if (beta > 0) {
    next += static_cast<long double>(update_.beta) * value_;
    magnitude += beta * (std::abs(value()) + allowed_);
  }
  value_ = next;
  allowed_ = beta * allowed_ + bound_at(bound_, magnitude, value(), k_);
  typical_ = beta * typical_ + typical_at(bound_, magnitude, value(), k_);
  comparable_ = comparable_ && std::isfinite(value()) && magnitude + allowed_ < bound_.overflow;
}

ElementVerdict UpdateChain::judge(double c) const {
  if (!comparable_) return {0, 0, 0, false};
  const auto error = static_cast<double>(c - value_);
  if (error == 0) return {};
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!std::isfinite(c)) return {kInfinity, kInfinity, error, true};
  return {std::abs(error) / allowed_, std::abs(error) / typical_, error, true};
}

}  // namespace spmmbench
