#include "verify/reference.hpp"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "core/available_memory.hpp"
#include "core/block_scales.hpp"
#include "core/word_hash.hpp"
#include "core/worth_threads.hpp"
#include "gpu/backend.hpp"
#include "spmmbench/reference_sum.hpp"

namespace spmmbench {
namespace {

// What fp32, or fp64 where `type` is, becomes when it is stored.
double stored_as(ElementType type, double value) {
  std::uint64_t bits = 0;
  store_element(type, &bits, 0, value);
  return load_element(type, &bits, 0);
}

// Adds `value` times a part of row `row` of B.
void add_products(double value, const DenseView& b, std::int64_t row, std::int64_t first,
                  std::int64_t count, ReferenceSum* sums) {
  const double least = smallest_normal(b.type);
  const bool row_major = b.layout == Layout::row_major;
  const std::int64_t step = row_major ? 1 : b.ld;
  const std::int64_t begin = row_major ? row * b.ld + first : first * b.ld + row;
  visit_element(b.type, [&](auto type) {
    const auto* const from = static_cast<const typename decltype(type)::Bits*>(b.data) + begin;
    for (std::int64_t j = 0; j < count; ++j) sums[j].add(value, type.decode(from[j * step]), least);
  });
}

// Compiled for several instruction sets: most processors have the fused multiplication and addition
// that x86-64 as such lacks. (The sanitizers' own start-up does not survive such a choice.)
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
__attribute__((target_clones("arch=x86-64-v3", "default")))
#endif
void add_products(double value, const DenseView& b, std::int64_t row, std::int64_t first,
                  std::int64_t count, TwoTermSum* sums) {
  const bool row_major = b.layout == Layout::row_major;
  const std::int64_t step = row_major ? 1 : b.ld;
  const double* const from =
      static_cast<const double*>(b.data) + (row_major ? row * b.ld + first : first * b.ld + row);
  for (std::int64_t j = 0; j < count; ++j) sums[j].add(value, from[j * step]);
}

// `T`: as what A and B are multiplied.
template <class T>
class HostReference final : public ReferenceChecker {
 public:
  HostReference(const CsrMatrix& a, std::span<const std::int32_t> row_ids, const DenseView& b)
      : a_(a), row_ids_(row_ids), b_(b) {}

  Verdict check(const DenseView& c, const ErrorBound& bound) override {
    return compare(c, [&](double got, const Sum& sum, double k) {
      return judge(got, sum.sum, sum.magnitude, k, bound, sum.low);
    });
  }

  Verdict check_equal(const DenseView& c) override {
    return compare(c, [type = c.type](double got, const Sum& sum, double) {
      return judge_equal(got, stored_as(type, sum.sum));
    });
  }

  void release_memory() override {
    kept_ = {};
    known_ = false;
  }

 private:
  using Sum = ReferenceSumOf<T>;
  static constexpr std::int64_t kColumns = 4096;  // that are computed at a time

  // Among equal errors the first in C counts, so that the report depends neither on the number of
  // threads nor on the order of rows.
  static bool is_worse(const Verdict& a, const Verdict& b) {
    if (a.error_over_bound != b.error_over_bound) return a.error_over_bound > b.error_over_bound;
    return std::pair(a.worst_row, a.worst_col) < std::pair(b.worst_row, b.worst_col);
  }

  // `judge_element`: the ElementVerdict on (C, its reference, nonzeros).
  template <class Judge>
  Verdict compare(const DenseView& c, const Judge& judge_element) {
    constexpr std::int64_t kMostKept = (std::int64_t{256} << 20) / sizeof(Sum);
    const std::int64_t n = c.cols;
    const Update& update = expected();
    const bool few = a_.rows * n <= kMostKept;
    const bool keep = known_ || (few && a_.rows * n * sizeof(Sum) < available_memory_bytes());
    if (keep) kept_.resize(a_.rows * n);
    // What is not kept needs no more than this for a thread, however wide C is.
    const std::int64_t most = std::min(n, kColumns);
    std::vector<Sum> passing(keep ? 0 : omp_get_max_threads() * most);
    Verdict verdict;
    std::int64_t incomparable = 0;
    double typical = 0;
    double error_squares = 0, reference_squares = 0;
#pragma omp parallel
    {
      Sum* const own = passing.data() + (keep ? 0 : omp_get_thread_num() * most);
      Verdict worst;
#pragma omp for schedule(dynamic, 64) reduction(+ : error_squares, reference_squares, \
                                                    incomparable) reduction(max : typical)
      for (std::int64_t row = 0; row < a_.rows; ++row) {
        const std::int64_t c_row = row_ids_.empty() ? row : row_ids_[row];
        const auto k = static_cast<double>(a_.row_length(row));
        for (std::int64_t first = 0; first < n; first += kColumns) {
          const std::int64_t count = std::min(n - first, kColumns);
          Sum* const sums = keep ? kept_.data() + row * n + first : own;
          if (!known_) compute_row(row, first, count, sums);
          for (std::int64_t j = 0; j < count; ++j) {
            const Sum sum = updated(sums[j], update, c_row, first + j);
            const ElementVerdict element = judge_element(element_at(c, c_row, first + j), sum, k);
            error_squares += element.error * element.error;
            if (std::isfinite(sum.sum)) reference_squares += sum.sum * sum.sum;
            typical = std::max(typical, element.over_typical);
            incomparable += element.comparable ? 0 : 1;
            const Verdict here = {
                .error_over_bound = element.over_bound, .worst_row = c_row, .worst_col = first + j};
            if (is_worse(here, worst)) worst = here;
          }
        }
      }
#pragma omp critical
      if (is_worse(worst, verdict)) verdict = worst;
    }
    known_ = keep;
    verdict.ok = verdict.error_over_bound <= 1;
    verdict.error_over_typical = typical;
    verdict.incomparable = incomparable;
    verdict.error_frobenius = std::sqrt(error_squares);
    verdict.relative_frobenius = error_squares == 0 ? 0
                                 : std::isfinite(error_squares)
                                     ? std::sqrt(error_squares / reference_squares)
                                     : std::numeric_limits<double>::quiet_NaN();
    return verdict;
  }

  // Sums `count` columns of a row, from `first` on.
  void compute_row(std::int64_t row, std::int64_t first, std::int64_t count, Sum* sums) const {
    std::fill(sums, sums + count, Sum{});
    for (std::int64_t e = a_.row_ptr[row]; e < a_.row_ptr[row + 1]; ++e)
      if (a_.block_scales.empty()) add_products(a_.value(e), b_, a_.col_idx[e], first, count, sums);
      else add_scaled(row, e, first, count, sums);
    const double scale = static_cast<double>(a_.scale) * b_.scale;
    for (std::int64_t j = 0; j < count; ++j) sums[j].finish(scale);
  }

  void add_scaled(std::int64_t row, std::int64_t e, std::int64_t first, std::int64_t count,
                  Sum* sums) const {
    const std::int64_t k = a_.col_idx[e];
    const double of_a = block_scale(a_, row, k);
    for (std::int64_t j = 0; j < count; ++j)
      sums[j].add_scaled(a_.value(e), element_at(b_, k, first + j), smallest_normal(b_.type),
                         of_a * b_.block_scales[scale_at_b(k, first + j, b_.cols)]);
  }

  std::vector<Sum> kept_;  // of all rows, unless there are too many or memory is short
  bool known_ = false;     // kept_ holds them
  const CsrMatrix& a_;
  std::span<const std::int32_t> row_ids_;
  DenseView b_;
};

}  // namespace

double element_at(const DenseView& view, std::int64_t i, std::int64_t j) {
  const std::int64_t at = view.layout == Layout::row_major ? i * view.ld + j : j * view.ld + i;
  return load_element(view.type, view.data, at);
}

std::vector<std::uint64_t> checksums(std::span<const ByteSpan> memories, Device& device) {
  if (device.info().kind == DeviceKind::cuda) return cuda_checksums(memories, device);
  return checksums_on_host(memories);
}

std::vector<std::uint64_t> checksums_on_host(std::span<const ByteSpan> memories) {
  std::vector<std::uint64_t> sums(memories.size());
  std::size_t all = 0;
  for (const ByteSpan& memory : memories) all += memory.size() / sizeof(std::uint64_t);
    // Threads are woken once for all: that takes longer than most arrays.
#pragma omp parallel if (all >= kWorthThreads)
  for (std::size_t m = 0; m < memories.size(); ++m) {
    const auto* const from = memories[m].data();
    const auto words = static_cast<std::int64_t>(memories[m].size() / sizeof(std::uint64_t));
    std::uint64_t sum = 0;
#pragma omp for schedule(static) nowait
    for (std::int64_t i = 0; i < words; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, from + i * sizeof word, sizeof word);
      sum += word_hash(i, word);
    }
#pragma omp atomic
    sums[m] += sum;
  }
  for (std::size_t m = 0; m < memories.size(); ++m) {
    const std::size_t words = memories[m].size() / sizeof(std::uint64_t);
    const ByteSpan rest = memories[m].subspan(words * sizeof(std::uint64_t));
    if (!rest.empty())
      sums[m] += word_hash(static_cast<std::int64_t>(words), last_word(rest.data(), rest.size()));
  }
  return sums;
}

std::unique_ptr<ReferenceChecker> make_reference(const CsrMatrix& a,
                                                 std::span<const std::int32_t> row_ids,
                                                 const DenseView& b, Device& device,
                                                 std::shared_ptr<void>* copy) {
  if (device.info().kind == DeviceKind::cuda)
    return make_cuda_reference(a, row_ids, b, device, kReferenceShare, copy);
  if (b.type == ElementType::f64) return std::make_unique<HostReference<double>>(a, row_ids, b);
  return std::make_unique<HostReference<float>>(a, row_ids, b);
}

}  // namespace spmmbench
