#include "select/rank.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "select/row_overlap.hpp"

namespace spmmbench {

std::vector<Candidate> candidates_of(const Product& product) {
  std::vector<Candidate> out;
  for (const auto& one : estimators()) {
    const Standing standing = one->standing_for(product);
    if (standing == Standing::left_out) continue;
    if (const auto estimate = one->estimate(product))
      out.push_back(
          {one->spec, *estimate, standing, one->on_device, one->by_sizes, one->ordered_as});
  }
  return out;
}

namespace {

// The estimator that is registered with this spec.
const Estimator& estimator_of(std::string_view spec) {
  return **std::ranges::find(estimators(), spec, [](const auto& one) { return one->spec; });
}

// The distinct columns over the nonzeros of this many rows whose columns are drawn at random, where
// `missed` is the share of columns that none of them has.
double gathered_of_random(double rows, double density, double missed) {
  return density > 0 ? (1 - missed) / (rows * density) : 1;
}
double square(double x) { return x * x; }

// Stored entries over nonzeros: tiles are half full if rows share no column, and fuller the more
// they share.
double stored_of_random(double gathered) { return gathered * (1 + gathered); }

}  // namespace

MatrixFeatures features_of_sizes(std::int64_t rows, std::int64_t cols, std::int64_t nnz) {
  MatrixFeatures sizes;
  sizes.rows = static_cast<double>(rows);
  sizes.cols = static_cast<double>(cols);
  sizes.nnz = static_cast<double>(nnz);
  sizes.mean_row = sizes.max_row = sizes.nnz / std::max(sizes.rows, 1.0);
  sizes.empty_rows = std::max(0.0, 1 - sizes.mean_row);  // at least
  const double density = sizes.mean_row / std::max(sizes.cols, 1.0);
  const double missed_8 = square(square(square(1 - density))), missed_16 = square(missed_8);
  sizes.gathered_8 = gathered_of_random(8, density, missed_8);
  sizes.gathered_16 = gathered_of_random(16, density, missed_16);
  sizes.gathered_32 = gathered_of_random(32, density, square(missed_16));
  sizes.stored_8 = stored_of_random(sizes.gathered_8);
  sizes.stored_16 = stored_of_random(sizes.gathered_16);
  sizes.stored_32 = stored_of_random(sizes.gathered_32);
  sizes.most_of_four = 4;
  return sizes;
}

bool may_go_by_sizes(const Estimator& one) { return one.any_rows_from > 0 && one.on_device; }

std::optional<Candidate> candidate_by_sizes(const Estimator& one, const Product& of_sizes) {
  if (!may_go_by_sizes(one) || of_sizes.n < one.any_rows_from) return std::nullopt;
  if (one.standing_for(of_sizes) != Standing::full) return std::nullopt;
  auto estimate = one.estimate(of_sizes);
  if (!estimate) return std::nullopt;
  estimate->us *= one.times_by_sizes;
  return Candidate{one.spec, *estimate, Standing::full, true};
}

std::vector<Candidate> candidates_by_sizes(const Product& of_sizes) {
  std::vector<Candidate> out;
  for (const auto& one : estimators())
    if (const auto candidate = candidate_by_sizes(*one, of_sizes)) out.push_back(*candidate);
  return out;
}

double cost_us(double us, double prepare_ms, std::int64_t calls) {
  return calls > 0 ? us + prepare_ms * 1e3 / static_cast<double>(calls) : us;
}

std::vector<Candidate> Ranking::by_overlap(double row_overlap) const {
  MatrixFeatures known = features;
  known.row_overlap = row_overlap;
  std::vector<Candidate> out = candidates_of(Product(known, shape, precision, device));
  std::ranges::stable_sort(out, {}, [this](const Candidate& one) {
    const auto& [us, prepare_ms] = one.estimate;
    return std::tuple(one.standing == Standing::trial, cost_us(us, prepare_ms, calls), prepare_ms);
  });
  return out;
}

std::vector<Candidate> Ranking::without_overlap(
    const std::function<bool(std::string_view)>& runs) const {
  const auto best = [&](const std::vector<Candidate>& all) {
    const auto found = std::ranges::find_if(all, runs, &Candidate::spec);
    return found == all.end() ? std::string_view() : found->spec;
  };
  const std::string_view common = best(by_overlap(1));
  if (common != best(by_overlap(0))) return {};
  std::vector<Candidate> out = by_overlap(kUnknownRowOverlap);
  const auto at = std::ranges::find(out, common, &Candidate::spec);
  if (at != out.end()) std::rotate(out.begin(), at, at + 1);
  return out;
}

void Ranking::estimate_in_order(const WcsrEstimate& windows,
                                std::span<Candidate> candidates) const {
  MatrixFeatures in_order = features;
  set_windows(windows, in_order);
  const Product product(in_order, shape, precision, device);
  for (Candidate& one : candidates) {
    if (one.ordered_as.empty()) continue;
    if (const auto estimate = estimator_of(one.ordered_as).estimate(product))
      one.estimate.us = estimate->us;
  }
}

}  // namespace spmmbench
