// What SpotChecks conclude from the elements of C that they have read.

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "measure/spot_checks.hpp"
#include "verify/bound.hpp"

namespace spmmbench {
namespace {

// Elements that are nearer to the product with the B of an earlier batch: of a right kernel at most
// every second one, and that only where its rounding errors exceed what a product changes. For 64
// of these 7/8 have a probability of 3e-10.
constexpr std::int64_t kFewestCompared = 64;
constexpr double kMostNearer = 7.0 / 8;

}  // namespace

std::vector<double> SpotChecks::values_of(const Checked& batch, const unsigned char* bytes) const {
  std::vector<double> values;
  for (std::size_t i = 0; i < batch.watched.size(); ++i)
    for (std::int64_t j = 0; j < batch.watched[i].columns(); ++j)
      values.push_back(load_element(operands_.c.type, bytes + i * kPieceBytes, j));
  return values;
}

void SpotChecks::judge_earlier() {
  while (unjudged_.size() > 1) {
    const Unjudged first = std::move(unjudged_.front());
    unjudged_.erase(unjudged_.begin());
    conclude(first.batch, values_of(first.batch, first.read), "a timed launch");
  }
}

void SpotChecks::settle() {
  if (unjudged_.empty()) return;
  device_.synchronize();
  unjudged_.emplace_back();  // none follows the last
  judge_earlier();
  unjudged_.clear();
}

void SpotChecks::after(const char* what) {
  // Before anything is computed: a thread may still write.
  const std::vector<double> read = read_c();
  settle();
  if (std::exchange(writes_changes_, false)) earlier_.clear();
  conclude(batch_, read, what);
}

void SpotChecks::conclude(const Checked& batch, const std::vector<double>& values,
                          const char* what) {
  std::size_t at = 0;
  for (const Watched& watched : batch.watched) {
    const auto k = static_cast<double>(a_.row_length(watched.row));
    for (std::int64_t j = 0; j < watched.columns(); ++j) {
      const std::int64_t column = watched.column + j;
      const double got = values[at++];
      const TwoTermSum& sum = watched.now[j];
      ElementVerdict element;
      double right = sum.sum, earlier = watched.old[j].sum;
      if (update_.plain()) {
        element = judge(got, sum.sum, sum.magnitude, k, bound_, sum.low);
      } else {
        UpdateChain chain = chain_of(watched, j), with_old = chain;
        chain.launch(sum);
        with_old.launch(watched.old[j]);
        element = chain.judge(got);
        right = chain.value();
        earlier = with_old.value();
      }
      Verdict verdict;
      verdict.error_over_bound = element.over_bound;
      verdict.error_over_typical = element.over_typical;
      verdict.worst_row = row_of_c(watched);
      verdict.worst_col = column;
      if (!(element.over_bound <= 1))
        throw WrongLaunch(fmt::format("{}: error {:.3g} x bound at C({}, {})", what,
                                      element.over_bound, verdict.worst_row, column),
                          verdict);
      if (!watched.mean_square.empty())
        add_error(what, element.error, watched.mean_square[j], verdict);
      if (constant_b_ || !element.comparable || right == earlier) continue;
      ++compared_;
      nearer_to_old_ += std::abs(got - earlier) < std::abs(got - right) ? 1 : 0;
      if (compared_ >= kFewestCompared &&
          static_cast<double>(nearer_to_old_) > kMostNearer * static_cast<double>(compared_))
        throw WrongLaunch(fmt::format("{}: C({}, {}) is a product with an earlier B", what,
                                      verdict.worst_row, column),
                          verdict);
    }
  }
}

// A launch that rounds more than the kernel says may keep to the bound of each element.
void SpotChecks::add_error(const char* what, double error, double mean_square,
                           const Verdict& verdict) {
  squares_ += error * error;
  mean_squares_ += mean_square;
  if (++added_ < kFewestCompared || squares_ <= kMeanMargin * kMeanMargin * mean_squares_) return;
  throw WrongLaunch(fmt::format("{}: all errors together are {:.3g} x what rounding leaves", what,
                                std::sqrt(squares_ / mean_squares_) / kMeanMargin),
                    verdict);
}

}  // namespace spmmbench
