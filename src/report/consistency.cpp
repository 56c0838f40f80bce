#include "report/consistency.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "report/identity.hpp"
#include "spmmbench/error.hpp"
#include "timing/quantiles.hpp"

namespace spmmbench {
namespace {

std::string contradiction_in(const Timing& timing, const char* name) {
  if (timing.samples_us.empty()) return fmt::format("has {} times without samples", name);
  if (!(*std::ranges::min_element(timing.samples_us) > 0))
    return fmt::format("has {} samples that are no time above 0", name);
  // Recorded documents may have rounded samples (scripts/slim.py).
  constexpr double kRounding = 1e-3;
  const double median = summarise(timing.samples_us, timing.launches_per_sample).median_us;
  if (!(std::abs(timing.median_us - median) <= kRounding * median))
    return fmt::format("has a {} median of {:g} us, and samples with one of {:g} us", name,
                       timing.median_us, median);
  return {};
}

std::string contradiction_in_verdicts(const ResultRow& row) {
  if (!row.verify) return "is ok without a verification";
  if (!(row.verify->error_over_bound <= 1))
    return fmt::format("is ok with an error of {:g} x its bound", row.verify->error_over_bound);
  if (row.exact && !row.exact->passed && row.exact->not_made.empty())
    return "is ok though its exact test failed";
  return {};
}

}  // namespace

std::string contradiction_in(const ResultRow& row) {
  for (const auto& [stage, ms] : row.stages_ms)
    if (!(ms >= 0) || !std::isfinite(ms))
      return fmt::format("has a stage '{}' of {:g} ms", stage, ms);
  for (const auto& [calls, us] : row.calls_us)
    if (!(us > 0) || !std::isfinite(us))
      return fmt::format("has times of calls, of which {} took {:g} us", calls, us);
  std::string found = row.status == Status::ok ? contradiction_in_verdicts(row) : std::string();
  if (found.empty() && row.hot) found = contradiction_in(*row.hot, "hot");
  if (found.empty() && row.cold) found = contradiction_in(*row.cold, "cold");
  return found;
}

void require_consistent(const std::string& path, const std::vector<ResultRow>& rows) {
  std::set<std::pair<std::string, std::string>> cases;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ResultRow& row = rows[i];
    std::string found = contradiction_in(row);
    if (found.empty() && !cases.emplace(case_key(row), row.matrix.source).second)
      found = fmt::format("has a second row at N = {} on {}", row.n, row.matrix.name);
    if (!found.empty())
      throw Error(fmt::format("{}: 'rows[{}]': {} {}", path, i, row.kernel, found));
  }
}

}  // namespace spmmbench
