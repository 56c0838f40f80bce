#include "select/estimate.hpp"

#include <algorithm>
#include <utility>

namespace spmmbench {
namespace {

using Estimators = std::vector<std::unique_ptr<const Estimator>>;

Estimators& all() {
  static Estimators registered;
  return registered;
}

// Whose factors a precision has that was not fitted.
Precision stand_in(Precision precision) {
  return bytes_of(storage_type(precision)) <= 2 ? Precision::fp16 : Precision::fp32;
}

double weighted_sum(const std::vector<Amount>& amounts, const std::vector<double>& factors,
                    const Product& product) {
  double sum = 0;
  for (std::size_t i = 0; i < std::min(amounts.size(), factors.size()); ++i)
    if (factors[i] != 0) sum += factors[i] * amounts[i].of(product);
  return sum;
}

}  // namespace

std::optional<Estimate> Estimator::estimate(const Product& product) const {
  const auto fitted_to = [&](Precision precision) {
    return std::ranges::find_if(factors, [&](const Factors& one) {
      return one.precision == precision && product.n >= one.least_n && product.n <= one.most_n &&
             one.candidate == spec;
    });
  };
  auto row = fitted_to(product.precision);
  if (row == factors.end()) row = fitted_to(stand_in(product.precision));
  if (row == factors.end()) return std::nullopt;
  return Estimate{weighted_sum(us, row->us, product),
                  weighted_sum(prepare_ms, row->prepare_ms, product)};
}

std::vector<Amount> prepare_amounts::of_csr() {
  return {{"constant", "times", constant}, {"nonzeros", "10^6", nonzeros}, {"rows", "10^6", rows}};
}

std::vector<Amount> prepare_amounts::of_dense() {
  std::vector<Amount> all = of_csr();
  all.push_back({"entries", "10^6", entries});
  return all;
}

const Estimators& estimators() { return all(); }

bool add_estimator(Estimator estimator) {
  Estimators& registered = all();
  auto added = std::make_unique<const Estimator>(std::move(estimator));
  const auto at = std::ranges::upper_bound(registered, added->spec, {},
                                           [](const auto& one) { return one->spec; });
  registered.insert(at, std::move(added));
  return true;
}

}  // namespace spmmbench
