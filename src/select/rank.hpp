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

// What is assumed of A without a look at it: rows have equal lengths and share as many columns as
// random rows do, few in a sparse graph and most in a layer of a network. For a kernel that gathers
// a row of B for every nonzero, most matrices are like that. For one that gains by structure, it is
// the worst case.
MatrixFeatures features_of_sizes(std::int64_t rows, std::int64_t cols, std::int64_t nnz);
// Whether it may be chosen by such features (Estimator::any_rows_from), prepared from an A on the
// device.
bool may_go_by_sizes(const Estimator& estimator);
std::optional<Candidate> candidate_by_sizes(const Estimator& estimator, const Product& of_sizes);
std::vector<Candidate> candidates_by_sizes(const Product& of_sizes);

// The time by which candidates are ranked. `calls` > 0 counts preparation, spread over this many
// calls.
double cost_us(double us, double prepare_ms, std::int64_t calls);

// What is known before candidates are ranked. `features.row_overlap` is not read.
struct Ranking {
  MatrixFeatures features;
  Shape shape;
  Precision precision = Precision::fp32;
  DeviceModel device;
  std::int64_t calls = 0;

  // The candidates for this overlap of rows: the best first, then those that are only tried.
  std::vector<Candidate> by_overlap(double row_overlap) const;
  // The same where the best of those that `runs` accepts is the same whether rows of A resemble
  // each other or not. Empty where that has to be known.
  std::vector<Candidate> without_overlap(
      const std::function<bool(std::string_view spec)>& runs) const;
  // Once it is known what windows gather in an order: the estimates of candidates that have
  // `ordered_as`.
  void estimate_in_order(const WcsrEstimate& windows, std::span<Candidate> candidates) const;
};

}  // namespace spmmbench
