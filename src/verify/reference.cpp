#include "verify/reference.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "gpu/backend.hpp"
#include "verify/bound.hpp"

namespace spmmbench {
namespace {

class HostReference final : public ReferenceChecker {
 public:
  HostReference(const CsrMatrix& a, std::span<const std::int32_t> row_ids, const DenseView& b)
      : a_(a), row_ids_(row_ids), b_(b) {}

  Verdict check(const DenseView& c, const ErrorBound& bound) override {
    const std::int64_t n = c.cols;
    Verdict verdict;
    double error_squares = 0, reference_squares = 0;
#pragma omp parallel
    {
      std::vector<double> sum(n), abs_sum(n);
      Verdict worst;
#pragma omp for schedule(dynamic, 64) reduction(+ : error_squares, reference_squares)
      for (std::int64_t row = 0; row < a_.rows; ++row) {
        std::fill(sum.begin(), sum.end(), 0.0);
        std::fill(abs_sum.begin(), abs_sum.end(), 0.0);
        for (std::int64_t e = a_.row_ptr[row]; e < a_.row_ptr[row + 1]; ++e) {
          const double value = a_.values[e];
          for (std::int64_t j = 0; j < n; ++j) {
            const double product = value * element_at(b_, a_.col_idx[e], j);
            sum[j] += product;
            abs_sum[j] += std::abs(product);
          }
        }
        const std::int64_t c_row = row_ids_.empty() ? row : row_ids_[row];
        const auto k = static_cast<double>(a_.row_length(row));
        for (std::int64_t j = 0; j < n; ++j) {
          const double got = element_at(c, c_row, j);
          const double error = std::abs(got - sum[j]);
          const double limit = bound_at(bound, abs_sum[j], sum[j], k);
          error_squares += error * error;
          reference_squares += sum[j] * sum[j];
          double ratio = error == 0 ? 0 : error / limit;
          if (!std::isfinite(got)) ratio = std::numeric_limits<double>::infinity();
          const bool worse = ratio > worst.error_over_bound;
          if (worse) worst = {false, ratio, c_row, j, 0};
        }
      }
#pragma omp critical
      // Ties go to the first row, so that the report does not depend on the thread count.
      if (worst.error_over_bound > verdict.error_over_bound ||
          (worst.error_over_bound == verdict.error_over_bound && worst.error_over_bound > 0 &&
           worst.worst_row < verdict.worst_row))
        verdict = worst;
    }
    verdict.ok = verdict.error_over_bound <= 1;
    verdict.relative_frobenius = error_squares == 0 ? 0
                                 : std::isfinite(error_squares)
                                     ? std::sqrt(error_squares / reference_squares)
                                     : std::numeric_limits<double>::quiet_NaN();
    return verdict;
  }

 private:
  const CsrMatrix& a_;
  std::span<const std::int32_t> row_ids_;
  DenseView b_;
};

}  // namespace

double element_at(const DenseView& view, std::int64_t i, std::int64_t j) {
  const std::int64_t at = view.layout == Layout::row_major ? i * view.ld + j : j * view.ld + i;
  return load_element(view.type, view.data, at);
}

std::unique_ptr<ReferenceChecker> make_reference(const CsrMatrix& a,
                                                 std::span<const std::int32_t> row_ids,
                                                 const DenseView& b, Device& device) {
  if (device.info().kind == DeviceKind::cuda) return make_cuda_reference(a, row_ids, b, device);
  return std::make_unique<HostReference>(a, row_ids, b);
}

}  // namespace spmmbench
