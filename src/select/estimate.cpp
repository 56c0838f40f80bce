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

double weighted_sum(const std::vector<Factor>& factors, const Product& product) {
  double sum = 0;
  for (const Factor& factor : factors)
    if (factor.of != nullptr) sum += factor.value * factor.of(product);
  return sum;
}

void find(const std::vector<Amount>& amounts, std::vector<Factor>& factors) {
  for (Factor& factor : factors)
    if (const auto at = std::ranges::find(amounts, factor.amount, &Amount::name);
        at != amounts.end())
      factor.of = at->of;
}

// Nothing where the row is not of the precision. One that was not fitted has the factors of a like
// one.
const Scale* scale_of(const Factors& row, Precision precision) {
  const Precision in_8_bits = is_scaled(precision) ? Precision::fp8_e4m3 : precision;
  const Precision narrow_or_wide =
      bytes_of(storage_type(precision)) <= 2 ? Precision::fp16 : Precision::fp32;
  for (const Precision wanted : {precision, in_8_bits, narrow_or_wide})
    if (const auto at = std::ranges::find(row.precisions, wanted, &Scale::precision);
        at != row.precisions.end())
      return &*at;
  return nullptr;
}

}  // namespace

std::optional<Estimate> Estimator::estimate(const Product& product) const {
  if (product.n > most_n) return std::nullopt;
  for (const Factors& row : factors) {
    if (product.n > row.most_n) continue;
    const Scale* scale = scale_of(row, product.precision);
    if (scale == nullptr) continue;
    // Memory takes C no faster (docs/decisions/selection-model.md).
    const double us = std::max(scale->times * weighted_sum(row.us, product), amounts::c(product));
    Estimate estimate{us, on_device ? prepare_amounts::copy_of_a_ms(product) : 0};
    for (const Preparation& one : preparation) estimate.prepare_ms += weighted_sum(one.ms, product);
    return estimate;
  }
  return std::nullopt;
}

std::vector<Amount> prepare_amounts::of_csr() {
  return {{"constant", "times", constant}, {"nonzeros", "10^6", nonzeros}, {"rows", "10^6", rows}};
}

std::vector<Amount> prepare_amounts::of_dense() {
  return {{"constant", "times", constant}, {"nonzeros", "10^6", nonzeros}, {"dense", "MB", dense}};
}

const Estimators& estimators() { return all(); }

bool add_estimator(Estimator estimator) {
  Estimators& registered = all();
  if (estimator.table.empty()) estimator.table = estimator.spec;
  std::erase_if(estimator.factors, [&](const auto& row) { return row.table != estimator.table; });
  std::erase_if(estimator.preparation, [&](const auto& one) { return one.spec != estimator.spec; });
  for (Factors& row : estimator.factors) find(estimator.us, row.us);
  for (Preparation& one : estimator.preparation) find(estimator.prepare_ms, one.ms);
  auto added = std::make_unique<const Estimator>(std::move(estimator));
  const auto at = std::ranges::upper_bound(registered, added->spec, {},
                                           [](const auto& one) { return one->spec; });
  registered.insert(at, std::move(added));
  return true;
}

}  // namespace spmmbench
