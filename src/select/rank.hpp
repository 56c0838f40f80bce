#pragma once
// Ranks the kernels that registered an estimator by what they are expected to cost.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "select/estimate.hpp"

namespace spmmbench {

struct Candidate {
  std::string_view spec;  // of an estimator, which outlives it
  Estimate estimate;
  Standing standing = Standing::full;
  bool on_device = false;            // Estimator::on_device
  bool by_sizes = false;             // Estimator::by_sizes
  std::string_view ordered_as = {};  // Estimator::ordered_as
};

// Every estimator that has an estimate, without those that are left out.
std::vector<Candidate> candidates_of(const Product& product);

// What is known of A without a look at it. It is taken to be as most matrices are for a kernel that
// gathers a row of B for every nonzero, and as the worst are for one that gains by their structure:
// rows of equal length that share no more columns than random ones do, which are few in a sparse
// graph and most in a layer of a network.
MatrixFeatures features_of_sizes(std::int64_t rows, std::int64_t cols, std::int64_t nnz);
// Whether it may be chosen by such features (Estimator::any_rows_from), prepared from an A on the
// device.
bool may_go_by_sizes(const Estimator& estimator);
std::optional<Candidate> candidate_by_sizes(const Estimator& estimator, const Product& of_sizes);
std::vector<Candidate> candidates_by_sizes(const Product& of_sizes);

// The time by which candidates are ranked. `calls` > 0 counts preparation, spread over so many
// calls.
double cost_us(double us, double prepare_ms, std::int64_t calls);

// What is known before candidates are ranked. `features.row_overlap` is not read.
struct Ranking {
  MatrixFeatures features;
  Shape shape;
  Precision precision = Precision::fp32;
  DeviceModel device;
  std::int64_t calls = 0;

  // Best first, then those that are trials only, where rows overlap so much.
  std::vector<Candidate> by_overlap(double row_overlap) const;
  // The same where the best of those that `runs` accepts is the same whether rows of A resemble
  // each other or not. Empty where that has to be known.
  std::vector<Candidate> without_overlap(
      const std::function<bool(std::string_view spec)>& runs) const;
  // Estimates those candidates anew that have `ordered_as`: it is known what windows gather in an
  // order.
  void estimate_in_order(const WcsrEstimate& windows, std::span<Candidate> candidates) const;
};

}  // namespace spmmbench
